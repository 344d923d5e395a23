"use strict";
// List of the nodes: filter by class and id, sort, turn pages, download as CSV.
(() => {
  const { $, on, element, bdi, classLabel, count, percent, plural, names, classes, n, NO_CLASS, setName } = kryograph;
  const { given, predicted, probability, rank } = kryograph;
  const PAGE = 25, headings = [...document.querySelectorAll("[data-sort]")];
  let key = "probability", direction = 1, from = 0, shown = [];

  // Places of the ids in their order; in it, n2 comes before n10.
  let placeOfId = null;
  const sortIds = () => {
    const collator = new Intl.Collator("en", { numeric: true }), place = new Uint32Array(n);
    Array.from({ length: n }, (_, i) => i).sort((a, b) => collator.compare(names[a], names[b])).forEach((i, k) => (place[i] = k));
    return place;
  };
  const values = { id: () => (placeOfId ??= sortIds()), given: () => given, predicted: () => predicted, probability: () => probability, rank: () => rank };

  const label = (i) => (given[i] === NO_CLASS ? "" : classes[given[i]]);
  const row = (i) => {
    const text = (value, kind = {}) => element("td", kind, bdi(value));
    const button = element("button", { type: "button", class: "jump", "data-open": i }, bdi(names[i]));
    return element("tr", {}, element("th", { scope: "row" }, button), text(label(i) || "–"),
      element("td", {}, classLabel(predicted[i])), text(percent(probability[i] / 10000), { class: "number" }), ...(rank ? [text(count(rank[i]), { class: "number" })] : []), text(setName(i, ", ")));
  };
  const turn = (by) => {
    from += by;
    $("rows").replaceChildren(...shown.slice(from, from + PAGE).map(row));
    $("range").textContent = shown.length ? `${count(from + 1)} to ${count(Math.min(from + PAGE, shown.length))} of ${count(shown.length)}` : "";
    $("earlier").disabled = from === 0;
    $("later").disabled = from + PAGE >= shown.length;
  };
  const list = () => {
    const c = $("list-class").value, state = $("list-label").value, words = $("list-id").value.trim().toLowerCase();
    shown = [];
    for (let i = 0; i < n; i++) {
      if (c !== "" && predicted[i] !== Number(c)) continue;
      if (state !== "" && (given[i] !== NO_CLASS) !== (state === "given")) continue;
      if (words && !names[i].toLowerCase().includes(words)) continue;
      shown.push(i);
    }
    const value = values[key]();
    shown.sort((a, b) => direction * (value[a] - value[b]) || a - b);
    headings.forEach((heading) => {
      const sorted = heading.dataset.sort === key;
      heading.closest("th").setAttribute("aria-sort", sorted ? (direction > 0 ? "ascending" : "descending") : "none");
    });
    $("list-status").textContent = shown.length === n ? plural(n, "node") : shown.length ? `${count(shown.length)} of ${plural(n, "node")}` : "No node fits.";
    $("download").disabled = !shown.length;
    from = 0;
    turn(0);
  };

  // A spreadsheet computes cells that begin with = + - @; an apostrophe makes them text.
  const cell = (text) => {
    const safe = /^[=+\-@\t\r]/.test(text) && !/^[-+]?\d+(\.\d+)?$/.test(text) ? `'${text}` : text;
    return /[",;'\r\n\t]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const download = () => {
    const lines = [["id", "given", "predicted", "probability", "set", ...(rank ? ["p_rank"] : [])]];
    for (const i of shown) {
      const numbers = rank ? [String(rank[i])] : [];
      lines.push([names[i], label(i), classes[predicted[i]], (probability[i] / 10000).toFixed(4), setName(i, " | "), ...numbers]);
    }
    const text = lines.map((line) => `${line.map(cell).join(",")}\n`).join("");
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    element("a", { href: address, download: "nodes.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  };

  headings.forEach((heading) => on(heading, "click", () => {
    [key, direction] = [heading.dataset.sort, key === heading.dataset.sort ? -direction : 1];
    list();
  }));
  on($("list-class"), "change", list);
  on($("list-label"), "change", list);
  on($("list-id"), "input", list);
  on($("earlier"), "click", () => turn(-PAGE));
  on($("later"), "click", () => turn(PAGE));
  on($("download"), "click", download);
  on($("rows"), "click", (event) => {
    const button = event.target.closest("[data-open]");
    if (button) kryograph.open(Number(button.dataset.open), button);
  });
  list();
})();
