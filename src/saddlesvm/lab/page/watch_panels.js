/* The panels of a run; each returns a function that draws a frame. */
const COLOURS = ["--minus", "--plus"];

function panelsOf(scene, run, home) {
  const reach = bounds(scene), pair = element("div", { "class": "pair" }, home);
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
function place(scene, i) { return Number(scene.y[i] > 0); }

function mark(parent, x, y, k) {
  const colour = "var(" + COLOURS[k] + ")";
  if (k === 1) return shape("path", { d: "M" + (x - 4) + " " + y + "h8M" + x + " " + (y - 4) + "v8", "class": "plus", style: "fill:none;stroke:" + colour + ";stroke-width:2.4" }, parent);
  return shape("circle", { cx: x, cy: y, r: 3.6, style: "fill:" + colour }, parent);
}

function plane(parent, scene, reach) {
  const picture = rowsPicture(parent, scene, reach, "rows, w and margins");
  const lines = [0, 1, -1].map(function (level) { return { level: level, path: shape("path", { "class": level ? "margin" : "line" }, picture.lines) }; });
  return function (frame) {
    lines.forEach(function (line) {
      const ends = segment(frame.w, frame.w[2] - line.level, reach.mx, reach.my, reach.r);
      const points = (ends || []).map(function (p) { return picture.x(p[0]).toFixed(1) + " " + picture.y(p[1]).toFixed(1); });
      line.path.setAttribute("d", points.length ? "M" + points.join("L") : "");
    });
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

/* The path of the weights over the last frames. */
function trailOf(run, index, picture) {
  const path = run.frames.slice(Math.max(0, index - 60), index + 1).map(function (one) { return picture.x(one.w[0]).toFixed(1) + " " + picture.y(one.w[1]).toFixed(1); });
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
    trail.setAttribute("d", trailOf(run, index, picture));
    set(dot, { cx: s(frame.w[0]), cy: t(frame.w[1]) });
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

function bars(parent, scene, run) {
  const n = scene.y.length, words = /pegasos/.test(run.kind) ? "How often each row was violated when drawn" : "b of each row";
  const box = titled(parent, words), picture = axes(box, widthOf(box), 130, [0.5, n + 0.5], [0, run.largest], { title: words, across: "row" });
  const y = picture.y, width = (picture.right - picture.left) / n, base = picture.bottom;
  const all = scene.y.map(function (_, i) {
    const colour = "fill:var(" + COLOURS[place(scene, i)] + ")";
    return shape("rect", { x: picture.left + i * width, width: Math.max(1, 0.8 * width), "class": "bar", style: colour }, picture.inside);
  });
  const pointer = shape("path", { "class": "ring" }, picture.svg);
  return function (frame) {
    const aside = new Set(frame.allAside);
    all.forEach(function (bar, i) {
      const top = y(Math.max(frame.allB[i], 0.004 * run.largest));
      set(bar, { y: top, height: y(0) - top });
      bar.classList.toggle("aside", aside.has(i));
    });
    const i = frame.rows[0];
    pointer.setAttribute("d", i === undefined ? "" : "M" + (picture.left + (i + 0.4) * width) + " " + (base + 8) + "l-4 0l4 -7l4 7z");
  };
}
