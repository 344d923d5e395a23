"use strict";
// Panel of one node: its prediction, its neighbours and its explanation.
(() => {
  const { $, on, element, bdi, drawing, sign, classLabel, count, percent, plural, data, names, classes, NO_CLASS, facts } = kryograph;
  const { given, predicted, probability, others, othersProbability, rank, starts, neighbours, degree, weights } = kryograph;
  const panel = $("panel"), body = $("panel-body");
  const number = (...children) => element("td", { class: "number" }, ...children);
  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
  let opener = null;

  const nodeButton = (i) => {
    const button = element("button", { type: "button", class: "jump" }, bdi(names[i]));
    on(button, "click", () => open(i, panel));
    return button;
  };
  const table = (caption, headings, rows, kind = "") => element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element("table", { class: kind }, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...headings.map(([name, words]) =>
        element("th", words ? { scope: "col" } : { scope: "col", class: "number" }, name)))),
      element("tbody", {}, ...rows)));

  const bar = (share, kind) => { // from the middle to either side if a sign counts, else from the left
    const middle = kind ? 80 : 0, wide = kind ? 160 : 120;
    const length = Math.max(Math.abs(share) * (kind ? 80 : 120), 0.5);
    const x = share < 0 ? middle - length : middle;
    return drawing("svg", { viewBox: `0 0 ${wide} 12`, width: wide, height: 12, class: "share", "aria-hidden": "true" },
      drawing("rect", { x, y: 2, width: length, height: 8, rx: 1.5, class: kind && share < 0 ? "bar against" : "bar" }),
      ...(kind ? [drawing("line", { x1: 80, y1: 0, x2: 80, y2: 12, class: "axis" })] : []));
  };

  const probabilities = (i) => {
    const listed = [[predicted[i], probability[i] / 10000]], more = others.length / names.length;
    for (let k = 0; k < more; k++) listed.push([others[more * i + k], othersProbability[more * i + k] / 10000]);
    const row = (name, share) => element("tr", {}, element("th", { scope: "row" }, name), number(percent(share)), element("td", {}, bar(share)));
    const rows = listed.map(([c, share]) => row(classLabel(c), share));
    const rest = classes.length - listed.length;
    if (rest > 0) rows.push(row(plural(rest, "other class", "other classes"), Math.max(1 - listed.reduce((sum, [, share]) => sum + share, 0), 0)));
    return [element("h4", {}, "Probabilities"), table("Probabilities", [["Class", true], ["Probability"], ["", true]], rows)];
  };

  // The node in the middle and its neighbours on a circle; a line is as thick as the edge is heavy.
  const picture = (i, around) => {
    const wide = 360, high = 250, most = weights ? Math.max(...around.map((e) => weights[e])) : 1;
    const cut = (name) => (name.length > 13 ? `${name.slice(0, 12)}…` : name);
    const lines = [], marks = [sign(predicted[i], wide / 2, high / 2, 9)];
    let top = high / 2, bottom = high / 2; // few neighbours need less room
    around.forEach((e, k) => {
      const j = neighbours[e], angle = (2 * Math.PI * (k + 0.5)) / around.length;
      const x = wide / 2 + 82 * Math.sin(angle), y = high / 2 - 98 * Math.cos(angle), left = x < wide / 2 - 1;
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
      const thick = weights ? 0.75 + (3.25 * weights[e]) / most : 1.5;
      lines.push(drawing("line", { x1: wide / 2, y1: high / 2, x2: x, y2: y, class: "edge", "stroke-width": thick.toFixed(2) }));
      if (given[j] !== NO_CLASS) marks.push(drawing("circle", { cx: x, cy: y, r: 10, class: "halo" }));
      marks.push(sign(given[j] === NO_CLASS ? predicted[j] : given[j], x, y, 6));
      marks.push(drawing("text", { x: x + (left ? -13 : 13), y: y + 4, "text-anchor": left ? "end" : "start" }, cut(names[j])));
    });
    const label = `${names[i]} and ${plural(around.length, "neighbour")}; the table that follows lists them.`;
    const size = { viewBox: `0 ${top - 20} ${wide} ${bottom - top + 40}`, width: wide, height: bottom - top + 40 };
    return drawing("svg", { ...size, role: "img", "aria-label": label, class: "ego" }, ...lines, ...marks);
  };
  const neighbourhood = (i) => {
    const around = Array.from({ length: starts[i + 1] - starts[i] }, (_, k) => starts[i] + k);
    const title = element("h4", {}, "Neighbours");
    if (!degree[i]) return [title, element("p", {}, "This node has no neighbour.")];
    const all = around.length === degree[i];
    const some = `${count(around.length)} of ${plural(degree[i], "neighbour")}${weights ? ", the heaviest edges first" : ""}; the others are not on this page.`;
    if (!around.length) return [title, element("p", {}, some)];
    const rows = around.map((e) => {
      const j = neighbours[e], known = given[j] !== NO_CLASS;
      return element("tr", {}, element("th", { scope: "row" }, nodeButton(j)),
        element("td", {}, classLabel(known ? given[j] : predicted[j])), number(known ? "given" : percent(probability[j] / 10000)),
        ...(weights ? [number(weights[e].toLocaleString("en", { maximumSignificantDigits: 4 }))] : []));
    });
    const headings = [["Node", true], ["Class", true], ["Probability"], ...(weights ? [["Weight"]] : [])];
    return [title, element("p", { class: "note" }, `${all ? `${plural(degree[i], "neighbour")}.` : some} Ringed: the label was given.`),
      picture(i, around), table("Neighbours", headings, rows)];
  };

  const DIVISIONS = [
    ["features", "Features", "Which features contribute, those of all nodes together."],
    ["neighbours", "Neighbours", "By which edge the contribution arrived at the node."],
    ["nodes", "Nodes", "Whose features contribute, over all paths."],
    ["hops", "Hops", "How many steps the contribution took along edges."],
  ];
  let division = "features";
  const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const unexplained = (i) => {
    const title = element("h4", {}, "Explanation");
    if (data.unexplained) return [title, element("p", {}, data.unexplained)];
    if ([...names[i]].length >= data.longest_name) return [title, element("p", {}, "The page has no explanation of this node and only the beginning of its id: pass the whole id to kryograph explain.")];
    const id = names[i].startsWith("-") ? `-- ${shellWord(names[i])}` : shellWord(names[i]);
    return [title, element("p", {}, "The page has no explanation of this node. This command prints it:"),
      element("pre", { tabindex: 0, "aria-label": "Command" }, element("code", {}, `kryograph explain ${data.run} ${id}`))];
  };
  const explanation = (i) => {
    const why = data.explanations[i];
    if (!why) return unexplained(i);
    const [first, second] = why.classes, [p, q] = why.probabilities, place = element("div", {});
    const draw = () => {
      const lines = [...why[division], ["intercept", why.intercept]], most = Math.max(...lines.map(([, value]) => Math.abs(value))) || 1;
      const rows = lines.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, bdi(name)), number(signed(value)), element("td", {}, bar(value / most, "signed"))));
      rows.push(element("tr", { class: "total" }, element("th", { scope: "row" }, "Sum: log-odds"), number(signed(why.log_odds)), element("td")));
      const [, name, meaning] = DIVISIONS.find(([key]) => key === division);
      place.replaceChildren(element("p", { class: "note" }, meaning), table(`Contributions: ${name}`, [[name, true], ["Log-odds"], ["", true]], rows, "bars"));
      buttons.forEach((button) => button.setAttribute("aria-pressed", button.dataset.division === division));
    };
    const buttons = DIVISIONS.map(([key, name]) => {
      const button = element("button", { type: "button", "data-division": key }, name);
      on(button, "click", () => {
        division = key;
        draw();
      });
      return button;
    });
    draw();
    const seen = given[i] === NO_CLASS ? [] : ["The label of this node was given, so the model has seen it."];
    const nearest = why.nearest.map(([name, label, cosine]) =>
      element("tr", {}, element("th", { scope: "row" }, bdi(name)), element("td", {}, bdi(label)), number(cosine.toFixed(3))));
    return [
      element("h4", {}, "Why ", bdi(first), " and not ", bdi(second)),
      element("p", {}, "The log-odds ln(p / q) of ", bdi(first), ` (${percent(p)}) against `, bdi(second), ` (${percent(q)}) are ${signed(why.log_odds)}. In each division the lines add up to them.`),
      element("div", { class: "buttons divisions", role: "group", "aria-label": "Divide the log-odds by" }, ...buttons), place,
      ...[...why.notes, ...seen].map((sentence) => element("p", { class: "note" }, sentence)),
      element("p", { class: "note" }, "The intercept is the log-odds if all features in reach were zero. A contribution says what the model computes, not what causes the label."),
      ...(nearest.length ? [element("h4", {}, "Most similar labelled nodes"),
        table("Most similar labelled nodes", [["Node", true], ["Label", true], ["Cosine"]], nearest),
        element("p", { class: "note" }, "Similar to the model; these nodes are no reasons.")] : []),
    ];
  };

  const open = (i, from) => {
    if (from && from !== panel) opener = from;
    $("panel-title").replaceChildren(bdi(names[i]));
    const rows = facts(i);
    if (rank) rows.push([`Rank by ${classes[data.positive]}`, count(rank[i])]);
    body.replaceChildren(
      element("dl", { class: "facts" }, ...rows.map(([name, value]) => element("div", {}, element("dt", {}, bdi(name)), element("dd", {}, bdi(value))))),
      element("div", { class: "pair" }, element("div", {}, ...probabilities(i), ...neighbourhood(i)), element("div", {}, ...explanation(i))),
    );
    panel.hidden = false;
    panel.dataset.node = i;
    if (!from) return;
    kryograph.showOnMap(i);
    panel.scrollIntoView({ block: "start" });
    panel.focus({ preventScroll: true });
  };
  const close = () => {
    panel.hidden = true;
    const back = opener?.isConnected ? opener : $("canvas");
    opener = null;
    back.focus();
  };
  on($("panel-close"), "click", close);
  on(panel, "keydown", (event) => {
    if (event.key === "Escape") close();
  });
  kryograph.open = open;
})();
