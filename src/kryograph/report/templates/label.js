"use strict";
// Labelling: one node at a time. Everything from the user's files is inserted as text, never as markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const element = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    node.append(...children); // strings become text
    return node;
  };
  const count = (k) => k.toLocaleString("en");
  const percent = (share) => `${(100 * share).toFixed(0)} %`;
  const plural = (k, noun) => `${count(k)} ${noun}${k === 1 ? "" : "s"}`;
  const TOKEN = "kryograph-token", PENDING = "kryograph-pending", HIDE = "kryograph-hide";
  const RETRY_MS = 1500, NO_CLASS = 65535;

  // The token is in the fragment once; then it is only in this tab.
  if (location.hash.length > 1) {
    sessionStorage.setItem(TOKEN, location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem(TOKEN);

  let state = null; // the last answer of the server
  let busy = false; // an answer is not acknowledged yet, or a node is being fetched
  let displayed = performance.now();
  let places = null; // the map: names and positions

  class Failure extends Error {
    constructor(status, message) { super(message); this.status = status; }
  }
  const ask = async (path, options = {}) => {
    const response = await fetch(path, { ...options, headers: { Authorization: `Bearer ${token}`, ...options.headers } });
    if (response.ok) return response;
    const words = await response.json().then((body) => body.error, () => response.statusText);
    throw new Failure(response.status, words);
  };
  const get = async (path) => (await ask(path)).json();
  const post = async (path, body) =>
    (await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();

  const stop = (message) => {
    $("main").hidden = true;
    $("stopped").hidden = false;
    $("stopped").textContent = message;
  };
  const say = (message) => { $("status").textContent = message; };

  // Answers: kept until the server has acknowledged them.
  const pending = () => JSON.parse(sessionStorage.getItem(PENDING) || "[]");
  const keep = (answers) => sessionStorage.setItem(PENDING, JSON.stringify(answers));
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const flush = async () => {
    for (let answers = pending(); answers.length; answers = pending()) {
      try {
        state = await post("/api/labels", answers[0]);
        keep(answers.slice(1));
        $("unsaved").textContent = "";
      } catch (error) {
        const refused = error instanceof Failure && [400, 413, 415].includes(error.status);
        if (refused) { // sending it again would not help
          keep(answers.slice(1));
          $("unsaved").textContent = "";
          say(`Not saved: ${error.message}`);
          state = await get("/api/item");
          return false;
        }
        const reason = error instanceof Failure ? error.message : "the server does not answer";
        $("unsaved").textContent = `${answers.length} not saved yet: ${reason}`;
        await pause(RETRY_MS);
      }
    }
    return true;
  };
  const send = async (answer) => {
    if (busy) return;
    busy = true;
    const before = state;
    keep([...pending(), { id: crypto.randomUUID(), seconds: (performance.now() - displayed) / 1000, ...answer }]);
    try {
      const accepted = await flush();
      displayed = performance.now();
      render();
      if (accepted) say(outcome(before));
    } finally {
      busy = false;
    }
  };
  const outcome = (before) => {
    const last = state.last;
    if (last.op === "class") return `New class: ${last.label}.`;
    if (last.op === "skip") return `Skipped: ${last.node}.`;
    if (last.op === "undo") return `Taken back: ${last.node}.`;
    const guess = !last.predicted ? "" : last.predicted === last.label ? ` The model had guessed so, too (${percent(last.p)}).`
      : ` The model had guessed ${last.predicted} (${percent(last.p)}).`;
    return `Saved: ${last.node} is ${last.label}.${guess}`;
  };
  window.addEventListener("beforeunload", (event) => { if (pending().length) event.preventDefault(); });

  const fetchItem = async (query = "") => {
    if (busy) return;
    busy = true;
    try {
      state = await get(`/api/item${query}`);
      displayed = performance.now();
      render();
      say("");
    } catch (error) {
      say(error.message);
    } finally {
      busy = false;
    }
  };

  // Commands
  const label = (name) => { if (state.item) send({ op: "label", node: state.item.node, label: name }); };
  const skip = () => { if (state.item) send({ op: "skip", node: state.item.node }); };
  const undo = () => { if (state.counts.undo) send({ op: "undo" }); else say("There is nothing to undo."); };
  const pick = (name) => { $("find").close(); fetchItem(`?node=${encodeURIComponent(name)}`); };
  const resume = () => { if (state.item && state.item.picked) fetchItem("?resume=1"); };
  const open = (id) => { if (!busy) $(id).showModal(); };
  const openFind = () => { $("query").value = ""; $("hits").replaceChildren(); open("find"); };
  const openNew = () => { $("class-name").value = ""; open("new"); };
  const filterClasses = () => { if (!$("filter-line").hidden) $("filter").focus(); };
  const commands = { " ": skip, u: undo, backspace: undo, n: openNew, "/": openFind, "?": () => open("help"), f: filterClasses, escape: resume };

  document.addEventListener("keydown", (event) => {
    if (!state || busy || event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (document.querySelector("dialog[open]") || event.target.closest("input, textarea, select")) return;
    const onButton = event.target.closest("button, summary");
    if (onButton && (event.key === " " || event.key === "Enter")) return; // the button acts
    const digit = /^\d$/.test(event.key) ? event.key : event.shiftKey ? null : (/^(?:Digit|Numpad)(\d)$/.exec(event.code) || [])[1];
    if (digit) {
      const name = state.classes[digit === "0" ? 9 : digit - 1];
      event.preventDefault();
      if (name !== undefined) label(name);
      else say(`There is no class ${digit}.`);
      return;
    }
    const command = commands[event.key.toLowerCase()];
    if (!command) return;
    event.preventDefault();
    command();
  });
  $("skip").onclick = skip;
  $("undo").onclick = undo;
  $("resume").onclick = resume;
  $("open-find").onclick = openFind;
  $("open-new").onclick = openNew;
  $("open-help").onclick = () => open("help");
  $("cancel-new").onclick = () => $("new").close();
  $("new-form").onsubmit = () => {
    const name = $("class-name").value.trim();
    if (name) send({ op: "class", label: name });
  };
  $("fit").onclick = async () => {
    try {
      state = await post("/api/fit", {});
      render();
      say("The full model is being fitted with all labels.");
    } catch (error) { say(error.message); }
  };
  $("download").onclick = async () => {
    const file = await (await ask("/api/labels.csv")).blob();
    const link = element("a", { href: URL.createObjectURL(file), download: "labels.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  let newest = 0;
  $("query").oninput = async () => {
    const mine = ++newest;
    const { hits } = await get(`/api/search?q=${encodeURIComponent($("query").value)}`);
    if (mine !== newest) return; // a later search is under way
    $("hits").replaceChildren(...hits.map((name) => {
      const button = element("button", { type: "button" }, name);
      button.onclick = () => pick(name);
      return element("li", {}, button);
    }));
  };
  $("query").onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const first = $("hits").querySelector("button");
    if (first) first.click();
  };
  const matching = () => {
    const words = $("filter").value.trim().toLowerCase();
    return state.classes.filter((name) => name.toLowerCase().includes(words));
  };
  $("filter").oninput = () => renderClasses();
  $("filter").onkeydown = (event) => {
    if (event.key === "Escape" || event.key === "Enter") {
      event.preventDefault();
      const [first] = matching(), typed = $("filter").value.trim();
      $("filter").value = "";
      $("filter").blur();
      renderClasses();
      if (event.key === "Enter" && typed && first !== undefined) label(first);
    }
  };
  $("hide").checked = sessionStorage.getItem(HIDE) === "1";
  $("hide").onchange = () => { sessionStorage.setItem(HIDE, $("hide").checked ? "1" : "0"); render(); };

  // Display
  const colour = (name) => {
    const value = state.colours[state.classes.indexOf(name)];
    return value === "currentColor" || value === undefined ? getComputedStyle(document.body).color : value;
  };
  const swatch = (name, kind = "swatch") => {
    const mark = element("span", { class: kind, "aria-hidden": "true" });
    mark.style.background = colour(name);
    return mark;
  };
  const render = () => {
    const { item, counts } = state;
    $("main").hidden = false;
    const left = counts.nodes - counts.labelled;
    $("progress").textContent = `${plural(counts.session, "label")} from you, ${count(left)} of ${plural(counts.nodes, "node")} without one` +
      (counts.skipped ? `, ${count(counts.skipped)} skipped` : "");
    document.title = item ? `${item.node} – label nodes` : "Label nodes";
    $("name").textContent = item ? item.node : "All nodes have a label.";
    $("why").textContent = item ? item.why.charAt(0).toUpperCase() + item.why.slice(1) : "";
    $("fields").replaceChildren(...(item ? item.fields : []).flatMap(([name, value]) =>
      [element("dt", {}, name), element("dd", value.length > 80 ? { class: "long" } : {}, value)]));
    $("skip").disabled = !item;
    $("undo").disabled = !counts.undo;
    $("resume").hidden = !(item && item.picked);
    renderClasses();
    renderGuess();
    renderNeighbours();
    renderAccuracy();
    renderFull();
    if (state.map) drawMap();
  };
  const renderClasses = () => {
    const many = state.classes.length > 10, names = many ? matching() : state.classes;
    $("filter-line").hidden = !many;
    const group = $("classes");
    const same = group.children.length === names.length && names.every((name, k) => group.children[k].dataset.name === name);
    if (!same) { // buttons that stay keep the focus
      group.replaceChildren(...names.map((name) => {
        const k = state.classes.indexOf(name), key = k < 10 ? [element("kbd", {}, String((k + 1) % 10))] : [];
        const button = element("button", { type: "button" }, ...key, swatch(name), element("span", { class: "name" }, name), element("span", { class: "count" }));
        button.dataset.name = name;
        button.onclick = () => label(name);
        return button;
      }));
    }
    for (const button of group.children) {
      const k = state.classes.indexOf(button.dataset.name);
      button.querySelector(".count").textContent = count(state.counts.by_class[k]);
      button.querySelector(".swatch").style.background = colour(button.dataset.name); // a new class changes the colours
      button.disabled = !state.item;
      button.setAttribute("aria-pressed", String(Boolean(state.item) && state.item.label === button.dataset.name));
    }
  };
  const renderGuess = () => {
    const guess = state.item && !$("hide").checked ? state.item.guess : null;
    $("guess").hidden = !guess;
    if (!guess) return;
    $("guess-line").replaceChildren(...guess.classes.flatMap((name, k) =>
      [swatch(name), ` ${name} ${percent(guess.p[k])}${k + 1 < guess.classes.length ? ", or " : ""}`]));
    const full = guess.full;
    $("full-line").textContent = full ? `Full model: ${full.class} ${percent(full.p)}${state.full.behind ? `, ${plural(state.full.behind, "label")} behind` : ""}` : "";
    $("reason-tables").replaceChildren();
    if ($("reasons").open) explain();
  };
  const explain = async () => {
    const reasons = await get("/api/explanation");
    if (!reasons || !state.item || reasons.node !== state.item.node) return;
    const titles = { features: "Features", neighbours: "Neighbours", hops: "Distance" };
    $("reason-tables").replaceChildren(...Object.keys(titles).filter((key) => reasons[key].length).map((key) => element("table", {},
      element("caption", {}, `${titles[key]}: for ${reasons.classes[0]} (+) or ${reasons.classes[1]} (−)`),
      element("tbody", {}, ...reasons[key].map(([name, value]) => element("tr", {},
        element("td", {}, name), element("td", {}, `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`)))))));
  };
  $("reasons").ontoggle = () => { if ($("reasons").open) explain(); };
  const renderNeighbours = () => {
    const item = state.item, near = item ? item.neighbours : [];
    $("near-title").textContent = !item || item.degree ? `Neighbours${item && item.degree > near.length ? `: ${near.length} of ${count(item.degree)}` : ""}` : "No neighbours";
    $("neighbours").replaceChildren(...near.map((one) => {
      const name = one.label || ($("hide").checked ? null : one.predicted);
      const words = one.label ? one.label : name ? `perhaps ${name}, ${percent(one.p)}` : "no label";
      const mark = name ? [swatch(name, one.label ? "swatch" : "swatch guessed"), " "] : [];
      const button = element("button", { type: "button", title: "Label this node" }, one.node, element("span", { class: "of" }, ...mark, words));
      button.onclick = () => pick(one.node);
      return element("li", {}, button);
    }));
  };
  const SVG = "http://www.w3.org/2000/svg";
  const shape = (name, attributes, words) => {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (words !== undefined) node.textContent = words;
    return node;
  };
  const renderAccuracy = () => {
    const { checks, hard } = state;
    const few = checks.share === null;
    $("accuracy").textContent = few ? "Too few to say" : percent(checks.share);
    $("accuracy").className = few ? "few" : "";
    $("interval").textContent = few ? "" : `${percent(checks.low)} to ${percent(checks.high)}`;
    $("checks").textContent = few ? `${checks.n} of 10 check nodes. They are drawn at random among the others.`
      : `On the last ${checks.n} check nodes, drawn at random and predicted before your answer; 95 % interval.`;
    $("hard").textContent = hard.n ? `On ${plural(hard.n, "node")} it found hard: ${percent(hard.right / hard.n)}.` : "";
    $("enough").hidden = !checks.enough;
    const curve = checks.curve, across = (k) => 30 + (curve.length < 2 ? 135 : 260 * k / (curve.length - 1)), up = (share) => 62 - 54 * share;
    const path = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    const grid = [0, 0.5, 1].flatMap((share) => [
      shape("line", { x1: 30, x2: 290, y1: up(share), y2: up(share), class: "grid" }),
      shape("text", { x: 24, y: up(share) + 4, "text-anchor": "end" }, String(100 * share))]);
    const band = [...curve.map((point, k) => [across(k), up(point[1])]), ...curve.map((point, k) => [across(k), up(point[2])]).reverse()];
    $("curve").toggleAttribute("hidden", curve.length < 2);
    $("curve").replaceChildren(...grid, shape("polygon", { points: path(band), class: "band" }),
      shape("polyline", { points: path(curve.map((point, k) => [across(k), up(point[0])])), class: "line" }));
  };
  const renderFull = () => {
    const { full } = state, parts = [];
    if (full.accuracy) parts.push(`${percent(full.accuracy[0])} on held-out labels (${percent(full.accuracy[1])} to ${percent(full.accuracy[2])}).`);
    if (full.behind !== null) parts.push(full.behind ? `${plural(full.behind, "label")} behind.` : "It knows all labels.");
    if (full.error && !full.busy) parts.push(full.error);
    if (full.busy) parts.push("It is being fitted …");
    if (full.folder) parts.push(`Written to ${full.folder}.`);
    $("full").textContent = parts.join(" ") || (full.automatic ? "It is fitted in the background once two classes have labels." : "It is fitted when you say so.");
  };

  // Map
  const unpack = (packed) => {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    return Uint16Array.from({ length: bytes.length / 2 }, (_, i) => bytes[2 * i] | (bytes[2 * i + 1] << 8));
  };
  let drawing = false, again = false;
  const drawMap = async () => {
    if (drawing) { again = true; return; }
    drawing = true;
    try {
      if (!places) {
        const map = await get("/api/map");
        if (!map) return;
        places = { names: map.names, positions: unpack(map.positions), number: new Map(map.names.map((name, i) => [name, i])) };
      }
      const packed = await get("/api/colours");
      places.label = unpack(packed.label);
      places.predicted = unpack(packed.predicted);
      places.probability = unpack(packed.probability);
      paint();
    } catch (error) {
      if (!(error instanceof Failure) && !(error instanceof TypeError)) throw error; // the server is away: later
    } finally {
      drawing = false;
      if (again) { again = false; drawMap(); }
    }
  };
  const at = (i) => {
    const canvas = $("map"), size = canvas.clientWidth - 24;
    return [12 + size * places.positions[2 * i] / 65535, 12 + size * places.positions[2 * i + 1] / 65535];
  };
  const paint = () => {
    if (!places || !places.label) return;
    const canvas = $("map"), width = canvas.clientWidth, scale = devicePixelRatio || 1, n = places.names.length;
    canvas.width = canvas.height = Math.round(width * scale);
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    pen.scale(scale, scale);
    const radius = Math.max(1.2, Math.min(4, 60 / Math.sqrt(n)));
    const colours = state.classes.map(colour), grey = style.getPropertyValue("--line"), ink = style.getPropertyValue("--ink");
    const hidden = $("hide").checked;
    const dot = (i, r) => { const [x, y] = at(i); pen.beginPath(); pen.arc(x, y, r, 0, 7); pen.fill(); };
    const here = state.item ? places.number.get(state.item.node) : undefined;
    const secret = state.item && state.item.blind ? here : undefined; // the map must not tell
    const known = [];
    for (let i = 0; i < n; i++) {
      if (places.label[i] !== NO_CLASS) { known.push(i); continue; }
      const guess = hidden || i === secret ? NO_CLASS : places.predicted[i];
      pen.globalAlpha = guess === NO_CLASS ? 1 : 0.15 + 0.55 * places.probability[i] / 10000;
      pen.fillStyle = guess === NO_CLASS ? grey : colours[guess] || grey;
      dot(i, radius);
    }
    pen.globalAlpha = 1;
    for (const i of known) {
      pen.fillStyle = ink;
      dot(i, radius + 1.6);
      pen.fillStyle = colours[places.label[i]] || grey;
      dot(i, radius + 0.8);
    }
    if (here !== undefined) {
      const [x, y] = at(here);
      pen.strokeStyle = ink;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x, y, radius + 5, 0, 7);
      pen.stroke();
    }
    canvas.dataset.drawn = String(state.seq);
    canvas.setAttribute("aria-label", `Map of the graph: ${plural(known.length, "node")} of ${count(n)} with a label`);
    $("map-note").textContent = "Dark rims: labelled. Pale: guessed. The ring is this node; click a node to label it.";
  };
  $("map").onclick = (event) => {
    if (!places) return;
    const box = $("map").getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = -1, least = 400;
    for (let i = 0; i < places.names.length; i++) {
      const [u, v] = at(i), distance = (u - x) ** 2 + (v - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    if (best >= 0) pick(places.names[best]);
  };
  window.addEventListener("resize", paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (state) { renderClasses(); paint(); } });

  // News: a finished map, a finished fit
  const follow = async () => {
    for (;;) {
      try {
        const { version } = await get(`/api/version?after=${state.version}`);
        if (version <= state.version) continue;
        const newer = await get("/api/item");
        if (!busy && newer.seq === state.seq) {
          const same = newer.item && state.item && newer.item.node === state.item.node;
          if (!same) displayed = performance.now();
          state = newer;
          render();
        } else {
          await pause(RETRY_MS);
        }
      } catch {
        await pause(RETRY_MS);
      }
    }
  };
  const start = async () => {
    if (!token) {
      stop("Open the address that the command has printed, with everything after the #.");
      return;
    }
    busy = true;
    try {
      await flush();
      state = await get("/api/item");
      displayed = performance.now();
      render();
      busy = false;
      follow();
    } catch (error) {
      stop(error instanceof Failure ? error.message : "The server does not answer. Start the command again, and reload this page.");
    }
  };
  start();
})();
