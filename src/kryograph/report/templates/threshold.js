"use strict";
// Threshold of the positive class: the slider moves the point on the curve and the numbers below it.
(() => {
  const slider = document.getElementById("threshold"), mark = document.getElementById("threshold-mark");
  const points = JSON.parse(slider.dataset.points);
  const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
  const count = (number) => Math.round(number).toLocaleString("en");
  const move = () => {
    const [threshold, precision, recall, selected, expected, x, y] = points[Number(slider.value)];
    const facts = {
      threshold: threshold.toFixed(3), precision: percent(precision), recall: percent(recall),
      selected: count(selected), expected: count(expected),
    };
    document.querySelectorAll("[data-fact]").forEach((place) => (place.textContent = facts[place.dataset.fact]));
    mark.setAttribute("cx", x);
    mark.setAttribute("cy", y);
    slider.setAttribute("aria-valuetext", `${facts.threshold}: precision ${facts.precision}, recall ${facts.recall}`);
  };
  slider.addEventListener("input", move);
  move(); // a browser may restore an earlier position
})();
