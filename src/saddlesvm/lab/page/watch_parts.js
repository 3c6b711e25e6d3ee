"use strict";
/* Scales, shapes and sentences of the step view; nothing here knows about time. The panels are in watch_panels.js. */
const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  set(made, attributes);
  if (parent) parent.appendChild(made);
  return made;
}

function set(element, attributes) {
  Object.keys(attributes).forEach(function (name) { element.setAttribute(name, attributes[name]); });
}

function element(name, attributes, parent, text) {
  const made = document.createElement(name);
  set(made, attributes);
  if (text) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

function canvas(parent, width, height, label) {
  return shape("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": label }, parent);
}

/* About `most` round numbers between low and high. */
function round(low, high, most) {
  const rough = (high - low) / most, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].find(function (k) { return k * power >= rough * 0.75; }) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(6)));
  return found;
}

/* Axes with numbers around a box of `wide` x `high` pixels: both scales, and a group that is clipped to the box. */
function axes(parent, wide, high, across, up, words) {
  const left = 34, right = wide - 6, top = 6, bottom = high - (words.across ? 30 : 18);
  const svg = canvas(parent, wide, high, words.title);
  const x = linear(across[0], across[1], left, right), y = linear(up[0], up[1], bottom, top);
  const places = round(across[0], across[1], Math.max(2, (right - left) / 45));
  places.forEach(function (value) {
    shape("path", { d: "M" + x(value) + " " + bottom + "v4", "class": "axis" }, svg);
    label(svg, x(value), bottom + 14, short(value), "middle");
  });
  round(up[0], up[1], Math.max(2, (bottom - top) / 34)).forEach(function (value) {
    shape("path", { d: "M" + left + " " + y(value) + "h-4", "class": "axis" }, svg);
    label(svg, left - 6, y(value) + 4, short(value), "end");
  });
  if (words.across) label(svg, (left + right) / 2, high - 3, words.across, "middle");
  axes.made = (axes.made || 0) + 1;
  const clip = "box" + axes.made, box = { x: left, y: top, width: right - left, height: bottom - top };
  shape("rect", box, shape("clipPath", { id: clip }, shape("defs", {}, svg)));
  shape("rect", Object.assign({ "class": "axis" }, box), svg);
  return { svg: svg, x: x, y: y, left: left, right: right, top: top, bottom: bottom, inside: shape("g", { "clip-path": "url(#" + clip + ")" }, svg) };
}

function linear(low, high, from, to) {
  const span = high > low ? high - low : 1;
  return function (value) { return from + (value - low) / span * (to - from); };
}

function label(parent, x, y, text, anchor) {
  shape("text", { x: x, y: y, "text-anchor": anchor || "start" }, parent).textContent = text;
}

function short(value) {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (value !== 0 && (size < 0.001 || size >= 100000)) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

/* The segment of the line a . x + c = 0 inside a square of half-width r around (mx, my). */
function segment(a, c, mx, my, r) {
  const norm = a[0] * a[0] + a[1] * a[1];
  if (!(norm > 1e-14)) return null;
  const t = (a[0] * mx + a[1] * my + c) / norm;
  const foot = [mx - t * a[0], my - t * a[1]];
  const along = [-a[1] / Math.sqrt(norm), a[0] / Math.sqrt(norm)];
  const reach = 3 * r;
  return [[foot[0] - reach * along[0], foot[1] - reach * along[1]], [foot[0] + reach * along[0], foot[1] + reach * along[1]]];
}

function titled(parent, text) {
  const box = element("div", { "class": "picture" }, parent);
  element("h3", {}, box, text);
  return box;
}

/* Pictures are as wide as their place, so that their texts keep their size. */
function widthOf(box) { return Math.max(130, Math.floor(box.clientWidth) || 300); }

/* What a visit did, in a sentence. */
function told(run, frame, earlier) {
  const gap = frame.primal - frame.dual;
  const proven = "Objective " + short(frame.primal) + ", proven to within " + short(Math.max(gap, 0)) + " of the best.";
  if (!earlier) return "At the start: w = 0. " + proven;
  if (run.kind === "newton") return "A Newton step over all rows. " + proven;
  if (!frame.rows.length) return proven;
  const row = "Row " + (frame.rows[0] + 1);
  const p = frame.plane;
  if (run.kind === "pegasos") {
    const many = frame.rows.length > 1 ? frame.rows.length + " rows, the first is " + (frame.rows[0] + 1) : row;
    const slope = p[1];
    const what = slope > 0 ? "pulls: y x is added" + (slope < 1 ? " times " + short(slope) : "") : "is content: w only shrinks";
    return many + "; its margin is " + short(p[0]) + ", it " + what + ". " + proven;
  }
  if (frame.aside && frame.aside.indexOf(frame.rows[0]) >= 0) {
    return row + " sits at its bound with margin " + short(p[0]) + " and is set aside. " + proven;
  }
  if (p[1] === p[4]) return row + ": margin " + short(p[0]) + ", b = " + short(p[1]) + " is best already. " + proven;
  const touch = "its margin moves from " + short(p[0]) + " to " + short(p[3]);
  return row + ": b goes from " + short(p[1]) + " to " + short(p[4]) + ", " + touch + ", and its plane touches the loss. " + proven;
}
