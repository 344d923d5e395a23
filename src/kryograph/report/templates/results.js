"use strict";
// Tooltip with the runs of a cell, by pointer or keyboard; sorting and filtering of the table of runs.
// Everything from the store is inserted as text, never as markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const fill = (node, attributes, children) => {
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    node.append(...children); // strings become text
    return node;
  };
  const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const drawn = (name, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  const within = (value, low, high) => Math.min(Math.max(value, low), Math.max(high, low));
  const cells = JSON.parse($("cells").textContent), tip = $("tip");

  // A dot for each run, the interval as a band, the mean and the paper's value as lines.
  const picture = ({ runs, mean, low, high, paper }) => {
    const values = [...runs.map(([, value]) => value), mean, low, high, paper].filter((value) => value !== null);
    const least = Math.min(...values), most = Math.max(...values);
    const room = Math.max(0.08 * (most - least), 0.25), width = 290, floor = 62;
    const x = (value) => 8 + ((width - 16) * (value - least + room)) / (most - least + 2 * room);
    const upright = (value, kind) => drawn("line", { x1: x(value), x2: x(value), y1: 8, y2: floor, class: kind });
    const parts = [drawn("line", { x1: 0, x2: width, y1: floor, y2: floor, class: "axis" })];
    if (low !== null) parts.push(drawn("rect", { x: x(low), y: 8, width: x(high) - x(low), height: floor - 8, class: "band" }));
    if (paper !== null) parts.push(upright(paper, "paper"));
    parts.push(upright(mean, "mean"));
    const stacked = [];
    for (const [, value] of [...runs].sort((a, b) => a[1] - b[1])) {
      const level = stacked.filter((other) => Math.abs(other - x(value)) < 8).length;
      stacked.push(x(value));
      parts.push(drawn("circle", { cx: x(value), cy: floor - 6 - 8 * (level % 6), r: 4, class: "run" }));
    }
    const end = (value, place, anchor) => drawn("text", { x: place, y: floor + 15, "text-anchor": anchor }, value.toFixed(1));
    parts.push(end(least, Math.max(x(least), 12), "middle"), end(most, Math.min(x(most), width - 12), "middle"));
    const label = `${runs.length} runs from ${Math.min(...runs.map((r) => r[1]))} to ${Math.max(...runs.map((r) => r[1]))} %`;
    return drawn("svg", { viewBox: `0 0 ${width} ${floor + 20}`, role: "img", "aria-label": label }, ...parts);
  };

  let current = null; // cell whose tooltip is visible
  const hide = () => {
    if (current) current.removeAttribute("aria-describedby");
    current = null;
    tip.hidden = true;
  };
  const show = (target) => {
    hide();
    const cell = cells[Number(target.dataset.cell)];
    const facts = cell.facts.map(([title, value]) => element("div", {}, element("dt", {}, title), element("dd", {}, value)));
    tip.replaceChildren(element("strong", {}, cell.name));
    if (cell.runs.length) {
      const meaning = cell.paper === null ? "Dots: runs. Line: mean." : "Dots: runs. Line: mean. Dashed: paper.";
      tip.append(picture(cell), element("p", { class: "note" }, meaning));
    }
    tip.append(element("dl", {}, ...facts));
    tip.hidden = false;
    current = target;
    target.setAttribute("aria-describedby", "tip");
    const box = target.getBoundingClientRect(), edge = document.documentElement.clientWidth;
    const above = box.top - tip.offsetHeight - 8;
    const top = box.bottom + 8 + tip.offsetHeight > innerHeight && above > 0 ? above : box.bottom + 8;
    tip.style.top = `${top + scrollY}px`;
    tip.style.left = `${within(box.left + box.width / 2 - tip.offsetWidth / 2, 8, edge - tip.offsetWidth - 8) + scrollX}px`;
  };

  // The Tab key stops once in each table; the arrow keys go from cell to cell.
  const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  for (const table of all(".heats")) {
    const rows = all("tbody tr", table).map((row) => all("td", row));
    if (!rows.length || !rows[0].length) continue;
    let stop = rows[0][0];
    stop.tabIndex = 0;
    rows.forEach((row, i) => row.forEach((cell, j) => {
      cell.addEventListener("pointerenter", () => show(cell));
      cell.addEventListener("pointerleave", () => (document.activeElement?.dataset.cell ? show(document.activeElement) : hide()));
      cell.addEventListener("blur", hide);
      cell.addEventListener("focus", () => {
        stop.tabIndex = -1;
        stop = cell;
        cell.tabIndex = 0;
        show(cell);
      });
      cell.addEventListener("keydown", (event) => {
        const step = STEPS[event.key];
        if (event.key === "Escape") hide();
        if (!step) return;
        event.preventDefault();
        rows[within(i + step[0], 0, rows.length - 1)][within(j + step[1], 0, row.length - 1)].focus();
      });
    }));
  }

  for (const table of all(".runs")) {
    const body = table.tBodies[0], rows = [...body.rows], heads = all("thead th", table);
    heads.forEach((head, k) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = (row) => row.cells[k].textContent;
      const number = head.classList.contains("number");
      const empty = (row) => text(row) === "" || text(row) === "–";
      const order = (a, b) => (number ? parseFloat(text(a)) - parseFloat(text(b)) : text(a).localeCompare(text(b), "en", { numeric: true }));
      // Empty cells come last in both directions.
      rows.sort((a, b) => empty(a) - empty(b) || (empty(a) ? 0 : (down ? -1 : 1) * order(a, b)));
      body.append(...rows);
    }));
    table.closest("details").querySelector(".filter").addEventListener("input", (event) => {
      const text = event.target.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(text);
    });
  }
})();
