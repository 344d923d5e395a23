"use strict";
// Map of the nodes: drawn on a canvas; a node is found by pointer, by search or by keyboard.
(() => {
  const { $, on, element, within, count, percent, data, names, classes, n, NO_CLASS, facts } = kryograph;
  const { positions, given, predicted, probability, heldOut } = kryograph;
  const canvas = $("canvas"), frame = $("frame"), tip = $("tip"), search = $("search"), matches = $("matches");
  const pen = canvas.getContext("2d");

  // Ways to colour: the group of a node, and the sign of each group. Later groups are drawn on top.
  const CONFIDENCE_LIMITS = [0.5, 0.7, 0.8, 0.9];
  const modes = {
    class: {
      title: "Predicted class",
      note: "Outlined: the label was given.",
      groups: classes.map((name, c) => ({ name, colour: data.colours[c], shape: c % data.shapes.length, size: 1 })),
      of: (i) => predicted[i],
      outlined: true,
    },
    confidence: {
      title: "Confidence",
      note: "The lower the confidence, the larger the sign.",
      groups: [
        ["90 % and more", "#1f6fa8", 0.8], ["80 to 90 %", "#79b4d8", 0.95], ["70 to 80 %", "#e9c46a", 1.1],
        ["50 to 70 %", "#e08a1e", 1.25], ["below 50 %", "#b8430b", 1.4],
      ].map(([name, colour, size]) => ({ name, colour, shape: 0, size })),
      of: (i) => CONFIDENCE_LIMITS.filter((limit) => probability[i] / 10000 < limit).length,
    },
    error: {
      title: "Held-out predictions",
      note: "Given labels were held out in turn and predicted.",
      groups: [
        { name: "not held out", colour: "#8b959e", shape: 0, size: 0.7 },
        { name: "correct", colour: "#0072b2", shape: 0, size: 1.25 },
        { name: "wrong", colour: "#d55e00", shape: 7, size: 1.6 },
      ],
      of: (i) => (heldOut[i] === NO_CLASS ? 0 : heldOut[i] === given[i] ? 1 : 2),
    },
  };
  let mode, group, order, only = -1, marked = -1;

  const choose = (key) => {
    mode = modes[key];
    only = -1;
    group = Uint16Array.from({ length: n }, (_, i) => mode.of(i));
    mode.counts = new Uint32Array(mode.groups.length);
    group.forEach((g) => mode.counts[g]++);
    // Classes are mixed, because the last one would hide the others; given labels are on top.
    const layer = (i) => (mode.outlined ? given[i] !== NO_CLASS : group[i]);
    order = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => layer(a) - layer(b) || a - b);
    repaint();
  };

  // The view: the point in the middle of the canvas, and the magnification.
  const span = 65536, room = 44;
  const view = { x: 0, y: 0, zoom: 1 };
  const box = [span, 0, span, 0];
  for (let k = 0; k < 2 * n; k++) {
    const low = 2 * (k % 2);
    box[low] = Math.min(box[low], positions[k]);
    box[low + 1] = Math.max(box[low + 1], positions[k]);
  }
  let width = 1, height = 1, ratio = 1;
  const scale = () => {
    const fit = Math.min((width - room) / (box[1] - box[0] + 1), (height - room) / (box[3] - box[2] + 1));
    return within(fit, 1e-4, 1) * view.zoom;
  };
  const toScreen = (i) =>
    [(positions[2 * i] - view.x) * scale() + width / 2, (positions[2 * i + 1] - view.y) * scale() + height / 2];
  const settle = () => {
    Object.assign(view, { x: within(view.x, box[0], box[1]), y: within(view.y, box[2], box[3]) });
    // A finger scrolls the page until the map is zoomed in, then it moves the map.
    canvas.style.touchAction = view.zoom > 1 ? "none" : "pan-y";
    $("farther").disabled = view.zoom === 1;
    show(marked);
    redraw();
  };
  const whole = () => {
    Object.assign(view, { zoom: 1, x: (box[0] + box[1]) / 2, y: (box[2] + box[3]) / 2 });
    settle();
  };
  const zoomBy = (factor, px = width / 2, py = height / 2) => {
    const before = 1 / scale();
    view.zoom = within(view.zoom * factor, 1, 60);
    view.x += (px - width / 2) * (before - 1 / scale());
    view.y += (py - height / 2) * (before - 1 / scale());
    if (view.zoom === 1) whole();
    else settle();
  };
  const pan = (dx, dy) => {
    Object.assign(view, { x: view.x - dx / scale(), y: view.y - dy / scale() });
    settle();
  };

  // The sign of each group is computed once as a list of pixels; drawing a node copies them.
  const rgb = (text) =>
    text[0] === "#" ? [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)) : text.match(/\d+/g).map(Number);
  const inside = (corners, x, y) => {
    if (!corners.length) return x * x + y * y <= 1;
    const crossed = ([ax, ay], [bx, by]) => ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax;
    return corners.filter((corner, k) => crossed(corner, corners.at(k - 1))).length % 2 === 1;
  };
  const sign = ({ colour, shape, size }, radius, dpr, outlined, opacity) => {
    const { color, backgroundColor } = getComputedStyle(frame), corners = data.shapes[shape];
    const fill = rgb(colour === "currentColor" ? color : colour), rim = rgb(outlined ? color : backgroundColor);
    const r = radius * size * dpr, all = r + (outlined ? 1.2 : 0.4) * dpr, half = Math.ceil(1.45 * all);
    const image = new ImageData(2 * half, 2 * half);
    for (let k = 0; k < 4 * half * half; k++) {
      let inner = 0, outer = 0;
      for (let q = 0; q < 16; q++) { // sixteen points of the pixel: how many are in the sign
        const x = (k % (2 * half)) - half + (q % 4) / 4 + 0.125;
        const y = Math.floor(k / 2 / half) - half + (q >> 2) / 4 + 0.125;
        outer += inside(corners, x / all, y / all);
        inner += inside(corners, x / r, y / r);
      }
      if (!outer) continue;
      image.data.set(fill.map((part, c) => (part * inner + rim[c] * (outer - inner)) / outer), 4 * k);
      image.data[4 * k + 3] = (255 * opacity * outer) / 16;
    }
    return image;
  };
  const MARGIN = 160; // twice the largest sign: signs at the edge are cut by the canvas, not by the loop below
  let sheet, bytes, words, signs = [], signRadius = 0, frameRequest = 0;
  const signOf = (g, outlined, dim) => {
    const image = sign(mode.groups[g], signRadius * (outlined ? 1.2 : 1), ratio, outlined, dim ? 0.12 : 1);
    const wide = image.width, pixels = new Uint32Array(image.data.buffer), alpha = (k) => image.data[4 * k + 3];
    const all = [...pixels.keys()], solid = all.filter((k) => alpha(k) === 255), soft = all.filter((k) => alpha(k) % 255);
    const offset = (k) => (Math.floor(k / wide) - wide / 2) * sheet.width + (k % wide) - wide / 2;
    return {
      solid: Int32Array.from(solid, offset),
      colour: Uint32Array.from(solid, (k) => pixels[k]),
      soft: Int32Array.from(soft, offset),
      parts: Int32Array.from(soft.flatMap((k) => [...image.data.subarray(4 * k, 4 * k + 4)])),
    };
  };
  const redraw = () => (frameRequest ||= requestAnimationFrame(draw));
  const draw = () => {
    const started = performance.now();
    const small = within(Math.min(width, height) / 560, 0.7, 1), base = small * within(90 / Math.sqrt(n + 100), 2.1, 6);
    const radius = Math.round(8 * base * Math.min(view.zoom ** 0.35, 2.6)) / 8;
    if (signRadius !== radius) [signRadius, signs] = [radius, []];
    frameRequest = 0;
    const paper = Uint8Array.from([...rgb(getComputedStyle(frame).backgroundColor).slice(0, 3), 255]);
    words.fill(new Uint32Array(paper.buffer)[0]);
    const s = scale() * ratio, left = view.x - sheet.width / 2 / s, top = view.y - sheet.height / 2 / s;
    const wide = sheet.width, edge = MARGIN / 2, right = wide - edge, bottom = sheet.height - edge;
    for (const dim of only < 0 ? [0] : [1, 0]) {
      for (let k = 0; k < n; k++) {
        const i = order[k], g = group[i];
        if (only >= 0 && (g !== only) !== !!dim) continue;
        const px = Math.round((positions[2 * i] - left) * s), py = Math.round((positions[2 * i + 1] - top) * s);
        if (px < edge || py < edge || px > right || py > bottom) continue;
        const kind = 4 * g + (mode.outlined && given[i] !== NO_CLASS ? 2 : 0) + dim, o = py * wide + px;
        const { solid, colour, soft, parts } = (signs[kind] ??= signOf(g, kind & 2, dim));
        for (let j = 0; j < solid.length; j++) words[o + solid[j]] = colour[j];
        for (let j = 0; j < soft.length; j++) {
          const b = 4 * (o + soft[j]), p = 4 * j, alpha = parts[p + 3];
          bytes[b] += ((parts[p] - bytes[b]) * alpha) >> 8;
          bytes[b + 1] += ((parts[p + 1] - bytes[b + 1]) * alpha) >> 8;
          bytes[b + 2] += ((parts[p + 2] - bytes[b + 2]) * alpha) >> 8;
        }
      }
    }
    pen.putImageData(sheet, -MARGIN, -MARGIN, MARGIN, MARGIN, canvas.width, canvas.height);
    if (marked >= 0) {
      const [x, y] = toScreen(marked);
      pen.lineWidth = 2.5 * ratio;
      pen.strokeStyle = getComputedStyle(frame).color;
      pen.beginPath();
      pen.arc(x * ratio, y * ratio, (2 * radius + 6) * ratio, 0, 7);
      pen.stroke();
    }
    canvas.dataset.ms = (performance.now() - started).toFixed(1);
  };
  const repaint = () => {
    signs = [];
    [$("legend-title").textContent, $("legend-note").textContent] = [mode.title, mode.note];
    const items = mode.groups.map((drawn, g) => {
      const image = sign(drawn, (5 * Math.min(drawn.size, 1.2)) / drawn.size, 2, false, 1);
      const picture = element("canvas", { width: image.width, height: image.height, "aria-hidden": "true" });
      picture.getContext("2d").putImageData(image, 0, 0);
      const total = element("span", { class: "count" }, count(mode.counts[g]));
      const state = { type: "button", "aria-pressed": only === g, title: "Show these alone" };
      const button = element("button", state, picture, element("bdi", {}, drawn.name), total);
      on(button, "click", () => {
        only = only === g ? -1 : g;
        items.forEach((item, k) => item.firstChild.setAttribute("aria-pressed", k === only));
        redraw();
      });
      return element("li", {}, button);
    });
    $("legend").replaceChildren(...items);
    redraw();
  };

  // A grid of cells with their nodes: the nearest node of a point is searched in a few cells.
  const CELLS = 128, starts = new Uint32Array(CELLS * CELLS + 1), members = new Uint32Array(n);
  const cellOf = (v) => within(Math.floor((v * CELLS) / span), 0, CELLS - 1);
  const cell = (i) => cellOf(positions[2 * i + 1]) * CELLS + cellOf(positions[2 * i]);
  for (let i = 0; i < n; i++) starts[cell(i) + 1]++;
  for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
  const next = starts.slice();
  for (let i = 0; i < n; i++) members[next[cell(i)]++] = i;
  const nearest = ([px, py], reach) => {
    const s = scale(), far = reach / s, x = view.x + (px - width / 2) / s, y = view.y + (py - height / 2) / s;
    let best = -1, least = far * far;
    for (let row = cellOf(y - far); row <= cellOf(y + far); row++) {
      for (let k = starts[row * CELLS + cellOf(x - far)]; k < starts[row * CELLS + cellOf(x + far) + 1]; k++) {
        const i = members[k], d = (positions[2 * i] - x) ** 2 + (positions[2 * i + 1] - y) ** 2;
        if (d <= least && (only < 0 || group[i] === only)) [best, least] = [i, d];
      }
    }
    return best;
  };

  // Tooltip beside a node; a marked node keeps it.
  const show = (i) => {
    const [x, y] = i < 0 ? [-1, -1] : toScreen(i);
    tip.hidden = x < 0 || y < 0 || x > width || y > height;
    if (tip.hidden) return;
    const rows = facts(i).map(([key, value]) =>
      element("div", {}, element("dt", {}, key), element("dd", {}, element("bdi", {}, value))));
    tip.replaceChildren(element("strong", {}, element("bdi", {}, names[i])), element("dl", {}, ...rows));
    const wide = tip.offsetWidth, high = tip.offsetHeight;
    const beside = x + 18 + wide < width ? x + 18 : x - 18 - wide;
    // Without room beside the node, the tooltip goes above or below it.
    const level = beside >= 4 ? y - high / 2 : y > height / 2 ? y - high - 22 : y + 22;
    tip.style.left = `${within(beside >= 4 ? beside : x - wide / 2, 4, width - wide - 4)}px`;
    tip.style.top = `${within(level, 4, height - high - 4)}px`;
  };
  const mark = (i) => {
    show((marked = i));
    redraw();
    if (i >= 0) kryograph.open(i);
  };
  const goTo = (i) => {
    Object.assign(view, { x: positions[2 * i], y: positions[2 * i + 1], zoom: Math.max(view.zoom, n > 200 ? 4 : 1) });
    [only, marked] = [-1, i];
    settle();
    repaint();
  };
  kryograph.showOnMap = goTo;

  // Search: equal ids first, then ids that begin with the text, then ids that contain it.
  const lower = names.map((name) => name.toLowerCase());
  const lookUp = () => {
    const words = search.value.trim().toLowerCase(), ranked = [[], [], []];
    for (let i = 0; i < n && words; i++) {
      const at = lower[i].indexOf(words);
      if (at >= 0) ranked[at > 0 ? 2 : lower[i] === words ? 0 : 1].push(i);
    }
    const hits = ranked.flat();
    $("found").textContent = !words ? "" : !hits.length ? "No id on the map contains this text."
      : hits.length === 1 ? "1 node found" : `${count(hits.length)} nodes found`;
    matches.replaceChildren(...hits.slice(0, 8).map((i) => {
      const answer = `${classes[predicted[i]]}, ${percent(probability[i] / 10000)}`;
      const more = element("span", { class: "count" }, answer);
      const button = element("button", { type: "button" }, element("bdi", {}, names[i]), more);
      on(button, "click", () => pick(i));
      return element("li", {}, button);
    }));
    matches.hidden = !hits.length;
    return hits;
  };
  const pick = (i) => {
    search.focus();
    [search.value, matches.hidden] = [names[i], true];
    goTo(i);
    kryograph.open(i);
  };
  on(search, "input", lookUp);
  on(search.parentElement, "keydown", (event) => {
    if (event.key === "Escape") matches.hidden = true;
    if (event.key !== "Enter" || event.target !== search) return;
    const [first] = lookUp();
    if (first !== undefined) pick(first);
  });
  on(document, "pointerdown focusin", (event) => {
    if (!search.parentElement.contains(event.target)) matches.hidden = true;
  });
  document.querySelectorAll("[data-node]").forEach((button) => on(button, "click", () => {
    goTo(Number(button.dataset.node));
    kryograph.open(Number(button.dataset.node));
    $("atlas").scrollIntoView();
    canvas.focus({ preventScroll: true });
  }));

  // The pointer: hover, drag, two fingers, wheel.
  const fingers = new Map();
  let moved = 0;
  const at = (event) => {
    const edge = canvas.getBoundingClientRect();
    return [event.clientX - edge.left, event.clientY - edge.top];
  };
  on(canvas, "pointerdown", (event) => {
    fingers.set(event.pointerId, at(event));
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
  });
  on(canvas, "pointermove", (event) => {
    const [x, y] = at(event), before = fingers.get(event.pointerId);
    if (!before) {
      const i = nearest([x, y], 14);
      canvas.style.cursor = i < 0 ? "" : "pointer";
      show(i < 0 ? marked : i);
      return;
    }
    moved += Math.hypot(x - before[0], y - before[1]);
    fingers.set(event.pointerId, [x, y]);
    const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    if (!other) return pan(x - before[0], y - before[1]);
    const apart = (point) => Math.max(Math.hypot(point[0] - other[0], point[1] - other[1]), 1);
    zoomBy(apart([x, y]) / apart(before), (x + other[0]) / 2, (y + other[1]) / 2);
  });
  on(canvas, "pointerup pointercancel", (event) => {
    if (fingers.delete(event.pointerId) && event.type === "pointerup" && moved < 6) mark(nearest(at(event), 18));
  });
  on(canvas, "pointerleave", () => show(marked));
  on(canvas, "wheel", (event) => {
    if (event.deltaY > 0 && view.zoom === 1) return; // zooming out of the whole map scrolls the page
    event.preventDefault();
    const turned = event.deltaY * (event.deltaMode === 1 ? 30 : 1);
    zoomBy(Math.exp(-within(turned, -120, 120) / 300), ...at(event));
  }, { passive: false });
  const closer = () => zoomBy(1.5), farther = () => zoomBy(1 / 1.5);
  const keys = {
    ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60),
    "+": closer, "=": closer, "-": farther, 0: whole, Escape: () => mark(-1),
  };
  on(canvas, "keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  Object.entries({ closer, farther, whole }).forEach(([id, action]) => on($(id), "click", () => action()));
  on($("colour"), "change", (event) => choose(event.target.value));

  const fit = () => {
    ratio = Math.min(window.devicePixelRatio || 1, 2);
    [width, height] = [canvas.clientWidth || 1, canvas.clientHeight || 1];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    sheet = new ImageData(canvas.width + 2 * MARGIN, canvas.height + 2 * MARGIN);
    [bytes, words, signs] = [new Uint8Array(sheet.data.buffer), new Uint32Array(sheet.data.buffer), []];
    settle();
  };
  ["(prefers-color-scheme: dark)", "print"].forEach((media) => on(matchMedia(media), "change", repaint));
  choose("class");
  fit();
  whole();
  new ResizeObserver(fit).observe(canvas);
})();
