"use strict";
// Data of the nodes and helpers that the scripts of this page share.
// Everything from the user's files is inserted as text, never as markup.
const kryograph = (() => {
  const $ = (id) => document.getElementById(id);
  const on = (target, types, listener, options) => types.split(" ").forEach((type) => target.addEventListener(type, listener, options));
  const filled = (node, attributes, children) => {
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    node.append(...children); // strings become text
    return node;
  };
  const element = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
  const bdi = (text) => element("bdi", {}, text);
  const { namespaceURI } = document.querySelector("svg"); // of a chart
  const drawing = (name, attributes = {}, ...children) => filled(document.createElementNS(namespaceURI, name), attributes, children);
  const within = (value, low, high) => Math.min(Math.max(value, low), Math.max(high, low));
  const count = (k) => k.toLocaleString("en");
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const plural = (k, noun, nouns = `${noun}s`) => `${count(k)} ${k === 1 ? noun : nouns}`;

  const data = JSON.parse($("nodes").textContent);
  const NO_CLASS = 65535;
  const numbers = (packed, Type = Uint16Array) => new Type(Uint8Array.from(atob(packed), (c) => c.charCodeAt(0)).buffer);
  const [positions, given, predicted, probability, heldOut, setOf, others, othersProbability, neighbours] =
    ["positions", "given", "predicted", "probability", "held_out", "set", "others", "others_probability", "neighbours"]
      .map((key) => numbers(data[key]));
  const [starts, degree] = ["starts", "degree"].map((key) => numbers(data[key], Uint32Array));
  const rank = data.rank && numbers(data.rank, Uint32Array), weights = data.weights && numbers(data.weights, Float32Array);
  const { names, classes } = data;

  const setName = (i, separator) => {
    const members = data.sets[setOf[i]]; // class numbers, or only their count
    return members.length ? members.map((c) => classes[c]).join(separator) : `${members} of ${classes.length} classes`;
  };
  // Names and values of the data of a node.
  const facts = (i) => {
    const rows = [
      ["Given", given[i] === NO_CLASS ? "no label" : classes[given[i]]],
      ["Predicted", classes[predicted[i]]],
      ["Probability", percent(probability[i] / 10000)],
      [`${+(100 * data.coverage).toFixed(1)} % set`, setName(i, ", ")],
    ];
    if (heldOut[i] !== NO_CLASS) rows.push(["Held out", `${heldOut[i] === given[i] ? "correct" : "wrong"}: ${classes[heldOut[i]]}`]);
    return rows;
  };

  // Colour and shape of class number c as on the map, around (x, y); and as a label with its name.
  const sign = (c, x, y, radius) => {
    const colour = data.colours[c], corners = data.shapes[c % data.shapes.length];
    const kind = colour === "currentColor" ? "sign inked" : "sign";
    if (!corners.length) return drawing("circle", { cx: x, cy: y, r: radius, fill: colour, class: kind });
    const points = corners.map(([dx, dy]) => `${x + radius * dx},${y + radius * dy}`).join(" ");
    return drawing("polygon", { points, fill: colour, class: kind });
  };
  const classLabel = (c) => element("span", { class: "class" },
    drawing("svg", { viewBox: "0 0 14 14", width: 14, height: 14, class: "sign", "aria-hidden": "true" }, sign(c, 7, 7, 4.6)), bdi(classes[c]));
  return {
    $, on, element, bdi, drawing, sign, classLabel, within, count, percent, plural, data, names, classes, n: names.length, NO_CLASS, setName, facts,
    positions, given, predicted, probability, heldOut, others, othersProbability, rank, starts, neighbours, degree, weights,
  };
})();
