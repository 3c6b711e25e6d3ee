/* The panels of a run, by the kind of problem; each returns a function that draws a frame. */
const COLOURS = ["--minus", "--plus", "--third", "--fourth", "--fifth", "--sixth"];

function panelsOf(scene, run, home) {
  const reach = bounds(scene), pair = element("div", { "class": "pair" }, home);
  if (scene.kind === "kernel") return [fieldPlane(pair, scene, reach), bars(pair, scene, run), lossPicture(home, scene, run)];
  if (scene.kind === "classes") return [classPlane(pair, scene, reach), classWeights(pair, scene, run), slopes(pair, scene), bars(pair, scene, run)];
  return [plane(pair, scene, reach), weightPlane(pair, scene, run), lossPicture(home, scene, run), bars(home, scene, run)];
}

function bounds(scene) {
  const x = scene.X.map(function (row) { return row[0]; }), y = scene.X.map(function (row) { return row[1]; });
  const mx = (Math.min.apply(null, x) + Math.max.apply(null, x)) / 2, my = (Math.min.apply(null, y) + Math.max.apply(null, y)) / 2;
  const r = 1.08 * Math.max(Math.max.apply(null, x) - mx, Math.max.apply(null, y) - my, 1e-9);
  return { mx: mx, my: my, r: r };
}

/* Axes with the rows on them; `show` rings the rows of a frame and fades those set aside. */
function rowsPicture(parent, scene, reach, title) {
  const box = titled(parent, "The plane"), wide = widthOf(box);
  const picture = axes(box, wide, wide - 16, [reach.mx - reach.r, reach.mx + reach.r], [reach.my - reach.r, reach.my + reach.r], { title: title });
  const sx = picture.x, sy = picture.y;
  const lines = shape("g", {}, picture.inside), marks = scene.X.map(function (row, i) { return mark(picture.inside, sx(row[0]), sy(row[1]), place(scene, i)); });
  const rings = shape("g", {}, picture.inside);
  function show(frame) {
    const aside = new Set(frame.allAside);
    marks.forEach(function (one, i) { one.classList.toggle("aside", aside.has(i)); });
    rings.replaceChildren();
    frame.rows.forEach(function (i) { shape("circle", { cx: sx(scene.X[i][0]), cy: sy(scene.X[i][1]), r: 8, "class": "ring" }, rings); });
  }
  return { x: sx, y: sy, lines: lines, show: show };
}

/* The number of the class of row i. */
function place(scene, i) { return scene.kind === "classes" ? scene.y[i] : Number(scene.y[i] > 0); }

function mark(parent, x, y, k) {
  const colour = "var(" + COLOURS[k] + ")", stroke = { "class": "plus", style: "fill:none;stroke:" + colour + ";stroke-width:2.4" };
  if (k === 1) return shape("path", Object.assign({ d: "M" + (x - 4) + " " + y + "h8M" + x + " " + (y - 4) + "v8" }, stroke), parent);
  if (k === 2) return shape("path", Object.assign({ d: "M" + (x - 4) + " " + (y + 3.5) + "h8l-4 -7z" }, stroke), parent);
  if (k === 3) return shape("path", Object.assign({ d: "M" + (x - 3.5) + " " + (y - 3.5) + "h7v7h-7z" }, stroke), parent);
  if (k === 4) return shape("path", Object.assign({ d: "M" + (x - 3.5) + " " + (y - 3.5) + "l7 7m0 -7l-7 7" }, stroke), parent);
  return shape("circle", { cx: x, cy: y, r: 3.6, style: k ? "fill:none;stroke-width:2.4;stroke:" + colour : "fill:" + colour }, parent);
}

function plane(parent, scene, reach) {
  const picture = rowsPicture(parent, scene, reach, "rows, w and margins");
  const lines = [0, 1, -1].map(function (level) { return { level: level, path: shape("path", { "class": level ? "margin" : "line" }, picture.lines) }; });
  return function (frame) {
    lines.forEach(function (line) {
      const ends = segment(frame.w, frame.w[2] - line.level, reach.mx, reach.my, reach.r);
      line.path.setAttribute("d", ends ? pathOf([ends], picture) : "");
    });
    picture.show(frame);
  };
}

/* Lines of two or more points as one path. */
function pathOf(lines, picture) {
  return lines.map(function (points) {
    return "M" + points.map(function (p) { return picture.x(p[0]).toFixed(1) + " " + picture.y(p[1]).toFixed(1); }).join("L");
  }).join("");
}

/* Segments that share ends joined to lines, so that dashes run on. */
function joined(segments) {
  const key = function (p) { return p[0].toFixed(6) + " " + p[1].toFixed(6); }, at = new Map(), used = new Set();
  segments.forEach(function (ends, k) {
    ends.forEach(function (p) { at.set(key(p), (at.get(key(p)) || []).concat(k)); });
  });
  function extended(line) {
    for (;;) {
      const end = key(line[line.length - 1]), next = at.get(end).find(function (k) { return !used.has(k); });
      if (next === undefined) return line;
      used.add(next);
      line.push(segments[next][key(segments[next][0]) === end ? 1 : 0]);
    }
  }
  return segments.map(function (ends, k) {
    if (used.has(k)) return null;
    used.add(k);
    return extended(extended(ends.slice()).reverse());
  }).filter(Boolean);
}

const GRID = 48;  /* cells of a side, for contours */

/* The rows and the curves where the decision function of a Gaussian kernel is 0, -1 and 1. */
function fieldPlane(parent, scene, reach) {
  const picture = rowsPicture(parent, scene, reach, "rows and the decision function at 0, -1 and 1");
  const lines = [0, 1, -1].map(function (level) { return { level: level, path: shape("path", { "class": level ? "margin" : "line" }, picture.lines) }; });
  const step = 2 * reach.r / GRID, side = GRID + 1, values = new Float32Array(side * side);
  function across(p) { return reach.mx - reach.r + p * step; }
  function up(q) { return reach.my - reach.r + q * step; }
  const kernel = scene.X.map(function (row) {
    const found = new Float32Array(side * side);
    for (let q = 0; q < side; q++) for (let p = 0; p < side; p++) {
      const dx = across(p) - row[0], dy = up(q) - row[1];
      found[q * side + p] = Math.exp(-scene.gamma * (dx * dx + dy * dy)) + scene.offset;
    }
    return found;
  });
  return function (frame) {
    values.fill(0);
    kernel.forEach(function (column, i) {
      const b = frame.scale * frame.allB[i] * scene.y[i];
      if (b) for (let k = 0; k < values.length; k++) values[k] += b * column[k];
    });
    lines.forEach(function (line) { line.path.setAttribute("d", pathOf(joined(contour(values, side, line.level, across, up)), picture)); });
    picture.show(frame);
  };
}

/* Segments of the curve where a function on a grid has the value `level`: marching squares, linear along the edges. */
function contour(values, side, level, across, up) {
  const found = [];
  for (let q = 0; q + 1 < side; q++) for (let p = 0; p + 1 < side; p++) {
    const corners = [[p, q], [p + 1, q], [p + 1, q + 1], [p, q + 1]], cuts = [];
    corners.forEach(function (from, k) {
      const to = corners[(k + 1) % 4], a = values[from[1] * side + from[0]] - level, b = values[to[1] * side + to[0]] - level;
      if (a < 0 === b < 0) return;
      const t = a / (a - b);
      cuts.push([across(from[0] + t * (to[0] - from[0])), up(from[1] + t * (to[1] - from[1]))]);
    });
    for (let k = 0; k + 1 < cuts.length; k += 2) found.push([cuts[k], cuts[k + 1]]);
  }
  return found;
}

/* The scores of class k as numbers a, b, c of a x + b y + c. */
function scoreOf(frame, k) { return frame.w.slice(3 * k, 3 * k + 3); }

/* The part of the line s_j - s_k = level on which s_k is the largest score beside that of j. */
function frontier(frame, j, k, level, K, reach) {
  const sj = scoreOf(frame, j), sk = scoreOf(frame, k);
  const ends = segment([sj[0] - sk[0], sj[1] - sk[1]], sj[2] - sk[2] - level, reach.mx, reach.my, reach.r);
  if (!ends) return null;
  let low = 0, high = 1;
  for (let m = 0; m < K; m++) {
    if (m === j || m === k) continue;
    const sm = scoreOf(frame, m);
    const ahead = ends.map(function (p) { return (sk[0] - sm[0]) * p[0] + (sk[1] - sm[1]) * p[1] + sk[2] - sm[2]; });
    if (ahead[0] < 0 && ahead[1] < 0) return null;
    const cut = ahead[0] / (ahead[0] - ahead[1]);
    if (ahead[0] < 0) low = Math.max(low, cut);
    else if (ahead[1] < 0) high = Math.min(high, cut);
  }
  function at(t) { return [ends[0][0] + t * (ends[1][0] - ends[0][0]), ends[0][1] + t * (ends[1][1] - ends[0][1])]; }
  return low < high ? [at(low), at(high)] : null;
}

function classPlane(parent, scene, reach) {
  const picture = rowsPicture(parent, scene, reach, "rows of all classes and the borders between them"), K = scene.classes.length;
  const border = shape("path", { "class": "line" }, picture.lines);
  const margins = scene.classes.map(function (_, k) { return shape("path", { "class": "margin", style: "stroke:var(" + COLOURS[k] + ")" }, picture.lines); });
  return function (frame) {
    const equal = [], ahead = margins.map(function () { return []; });
    for (let j = 0; j < K; j++) for (let k = 0; k < K; k++) {
      if (j === k) continue;
      if (j < k) equal.push(frontier(frame, j, k, 0, K, reach));
      ahead[j].push(frontier(frame, j, k, 1, K, reach));
    }
    border.setAttribute("d", pathOf(equal.filter(Boolean), picture));
    margins.forEach(function (path, j) { path.setAttribute("d", pathOf(ahead[j].filter(Boolean), picture)); });
    picture.show(frame);
  };
}

/* A square for weights whose largest norm is `most`. */
function weightsPicture(parent, most, title) {
  const box = titled(parent, "The weights"), wide = widthOf(box);
  const picture = axes(box, wide, wide - 16, [-most, most], [-most, most], { title: title });
  shape("path", { d: "M" + picture.left + " " + picture.y(0) + "H" + picture.right + "M" + picture.x(0) + " " + picture.top + "V" + picture.bottom, "class": "axis" }, picture.inside);
  return picture;
}

function cross(picture, w) {
  shape("path", { d: "M" + (picture.x(w[0]) - 6) + " " + (picture.y(w[1]) - 6) + "l12 12m0 -12l-12 12", "class": "cross" }, picture.inside);
}

/* The path of the weights at w[at], w[at + 1] over the last frames. */
function trailOf(run, index, at, picture) {
  const path = run.frames.slice(Math.max(0, index - 60), index + 1).map(function (one) { return picture.x(one.w[at]).toFixed(1) + " " + picture.y(one.w[at + 1]).toFixed(1); });
  return "M" + path.join("L");
}

function weightReach(scene) {
  const most = [Math.hypot(scene.optimum[0], scene.optimum[1])];
  scene.runs.forEach(function (run) {
    const sizes = run.frames.map(function (frame) { return Math.hypot(frame.w[0], frame.w[1]); }).sort(function (a, b) { return a - b; });
    most.push(sizes[Math.floor(0.97 * (sizes.length - 1))]);
  });
  if (scene.ball) most.push(scene.ball / 1.1);
  return 1.15 * Math.max.apply(null, most);
}

function weightPlane(parent, scene, run) {
  const most = weightReach(scene), picture = weightsPicture(parent, most, "the path of w");
  const s = picture.x, t = picture.y, inside = picture.inside;
  const radius = (scene.ball || 1 / Math.sqrt(scene.lam)) / most * (picture.right - picture.left) / 2;
  shape("circle", { cx: s(0), cy: t(0), r: radius, "class": "thin" + (scene.ball && run.kind === "pegasos" ? "" : " dashed") }, inside);
  const trail = shape("path", { "class": "line", style: "stroke-width:1;opacity:.7" }, inside);
  cross(picture, scene.optimum);
  const dot = shape("circle", { r: 5, "class": "dot" }, inside);
  return function (frame, index) {
    trail.setAttribute("d", trailOf(run, index, 0, picture));
    set(dot, { cx: s(frame.w[0]), cy: t(frame.w[1]) });
  };
}

function classWeights(parent, scene, run) {
  const sizes = [];
  run.frames.concat({ w: scene.optimum }).forEach(function (frame) {
    for (let at = 0; at < frame.w.length; at += 3) sizes.push(Math.hypot(frame.w[at], frame.w[at + 1]));
  });
  const picture = weightsPicture(parent, 1.1 * Math.max.apply(null, sizes), "the path of the weights of each class");
  const dots = scene.classes.map(function (_, k) {
    const colour = "var(" + COLOURS[k] + ")";
    cross(picture, scene.optimum.slice(3 * k));
    return { trail: shape("path", { "class": "line", style: "stroke-width:1;opacity:.7;stroke:" + colour }, picture.inside), dot: shape("circle", { r: 5, style: "fill:" + colour }, picture.inside) };
  });
  return function (frame, index) {
    dots.forEach(function (one, k) {
      one.trail.setAttribute("d", trailOf(run, index, 3 * k, picture));
      set(one.dot, { cx: picture.x(frame.w[3 * k]), cy: picture.y(frame.w[3 * k + 1]) });
    });
  };
}

/* The slopes e + x . w of the classes of the row just drawn, before and after the visit. */
function slopes(parent, scene) {
  const K = scene.classes.length, all = [0, 1];
  scene.runs.forEach(function (run) { run.frames.forEach(function (frame) { if (frame.slopes) all.push.apply(all, frame.slopes); }); });
  const words = "The slopes of the row just drawn", box = titled(parent, words);
  const low = Math.min.apply(null, all), high = Math.max.apply(null, all);
  const picture = axes(box, widthOf(box), 190, [-0.5, K - 0.5], [low - 0.05 * (high - low), high + 0.05 * (high - low)], { title: words, ticks: scene.classes });
  const before = [], after = [];
  scene.classes.forEach(function (_, k) {
    const colour = "var(" + COLOURS[k] + ")";
    before.push(shape("circle", { cx: picture.x(k), r: 6, style: "fill:none;stroke-width:1.6;stroke:" + colour }, picture.inside));
    after.push(shape("circle", { cx: picture.x(k), r: 4, style: "fill:" + colour }, picture.inside));
  });
  const level = shape("path", { "class": "thin dashed" }, picture.inside);
  return function (frame) {
    picture.inside.style.visibility = frame.slopes ? "visible" : "hidden";
    if (!frame.slopes) return;
    for (let k = 0; k < K; k++) {
      before[k].setAttribute("cy", picture.y(frame.slopes[k]));
      after[k].setAttribute("cy", picture.y(frame.slopes[K + k]));
    }
    level.setAttribute("d", "M" + picture.left + " " + picture.y(Math.max.apply(null, frame.slopes.slice(K))) + "H" + picture.right);
  };
}

function lossPicture(parent, scene, run) {
  const box = titled(parent, "The lower plane under the loss of the row just drawn"), tangent = /pegasos/.test(run.kind);
  const picture = axes(box, widthOf(box), 190, [-3, 4], [-1.2, 4.2], { title: "loss and lower plane", across: "margin" });
  const svg = picture.inside, x = picture.x, y = picture.y;
  shape("path", { d: "M" + picture.left + " " + y(0) + "H" + picture.right, "class": "axis" }, svg);
  shape("path", { d: "M" + scene.loss.curve.map(function (p) { return x(p[0]) + " " + y(Math.min(p[1], 4.4)); }).join("L"), "class": "cross" }, svg);
  const before = shape("path", { "class": "margin" }, svg), after = shape("path", { "class": "line" }, svg);
  const dot = shape("circle", { r: 5, "class": "dot" }, svg);
  function straight(slope, height) { return "M" + x(-3) + " " + y(height + 3 * slope) + "L" + x(4) + " " + y(height - 4 * slope); }
  return function (frame) {
    const p = frame.plane;
    svg.style.visibility = p ? "visible" : "hidden";
    if (!p) return;
    before.setAttribute("d", straight(p[1], p[2]));
    after.setAttribute("d", straight(p[4], p[5]));
    const m = Math.max(-3, Math.min(4, tangent ? p[0] : p[3]));
    set(dot, { cx: x(m), cy: y(p[tangent ? 2 : 5] - p[tangent ? 1 : 4] * m) });
  };
}

const BARS = { linear: "b of each row", kernel: "b of each row", classes: "The weight of each row against its rivals" };

function bars(parent, scene, run) {
  const n = scene.y.length, K = scene.kind === "classes" ? scene.classes.length : 1;
  const often = scene.kind === "kernel" ? "The count of each row" : "How often each row was violated when drawn";
  const words = /pegasos/.test(run.kind) ? often : BARS[scene.kind];
  const box = titled(parent, words), high = scene.kind === "linear" ? 130 : 190;
  const picture = axes(box, widthOf(box), high, [0.5, n + 0.5], [0, run.largest], { title: words, across: "row" });
  const y = picture.y, width = (picture.right - picture.left) / n, base = picture.bottom;
  const all = [];
  for (let i = 0; i < n; i++) for (let k = 0; k < K; k++) {
    const colour = "fill:var(" + COLOURS[K > 1 ? k : place(scene, i)] + ")";
    all.push(shape("rect", { x: picture.left + i * width, width: Math.max(1, 0.8 * width), "class": "bar", style: colour }, picture.inside));
  }
  const pointer = shape("path", { "class": "ring" }, picture.svg);
  return function (frame) {
    const aside = new Set(frame.allAside);
    for (let i = 0; i < n; i++) {
      let below = 0;
      for (let k = 0; k < K; k++) {
        const value = frame.allB[i * K + k], shown = K > 1 ? value : Math.max(value, 0.004 * run.largest);
        const top = y(below + shown);
        set(all[i * K + k], { y: top, height: y(below) - top });
        all[i * K + k].classList.toggle("aside", aside.has(i));
        below += shown;
      }
    }
    const i = frame.rows[0];
    pointer.setAttribute("d", i === undefined ? "" : "M" + (picture.left + (i + 0.4) * width) + " " + (base + 8) + "l-4 0l4 -7l4 7z");
  };
}
