(function () {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  const n = scene.y.length;
  const reach = bounds();
  const weights = weightReach();
  let clock = "touched", ticks = [], place = 0, timer = null;

  function byId(name) { return document.getElementById(name); }

  function bounds() {
    const x = scene.X.map(function (row) { return row[0]; }), y = scene.X.map(function (row) { return row[1]; });
    const mx = (Math.min.apply(null, x) + Math.max.apply(null, x)) / 2, my = (Math.min.apply(null, y) + Math.max.apply(null, y)) / 2;
    const r = 1.08 * Math.max(Math.max.apply(null, x) - mx, Math.max.apply(null, y) - my, 1e-9);
    return { mx: mx, my: my, r: r };
  }

  function weightReach() {
    const most = [Math.hypot(scene.optimum[0], scene.optimum[1])];
    scene.runs.forEach(function (run) {
      const sizes = run.frames.map(function (frame) { return Math.hypot(frame.w[0], frame.w[1]); }).sort(function (a, b) { return a - b; });
      most.push(sizes[Math.floor(0.97 * (sizes.length - 1))]);
    });
    if (scene.ball) most.push(scene.ball / 1.1);
    return 1.15 * Math.max.apply(null, most);
  }

  /* b and the rows set aside at every frame, from the changes that the frames hold. */
  scene.runs.forEach(function (run) {
    let b = new Float32Array(n), aside = [];
    run.frames.forEach(function (frame) {
      b = b.slice();
      for (let k = 0; k < frame.b.length; k += 2) b[frame.b[k]] = frame.b[k + 1];
      if (frame.aside) aside = frame.aside;
      frame.allB = b;
      frame.allAside = aside;
    });
  });

  function build(run, number) {
    const home = byId("runs").children[number];
    element("h2", {}, home, run.label);
    const view = { run: run, told: element("p", { "class": "told", id: "told" + number }, home) };
    const pair = element("div", { "class": "pair" }, home);
    view.plane = plane(pair, run);
    view.weights = weightPlane(pair, run);
    view.loss = lossPicture(home, run);
    view.bars = bars(home, run);
    return view;
  }

  function titled(parent, text) {
    const box = element("div", { "class": "picture" }, parent);
    element("h3", {}, box, text);
    return box;
  }

  /* Pictures are as wide as their place, so that their texts keep their size. */
  function widthOf(box) { return Math.max(130, Math.floor(box.clientWidth) || 300); }

  function plane(parent, run) {
    const box = titled(parent, "The plane"), wide = widthOf(box);
    const picture = axes(box, wide, wide - 16, [reach.mx - reach.r, reach.mx + reach.r], [reach.my - reach.r, reach.my + reach.r], { title: "rows, w and margins" });
    const sx = picture.x, sy = picture.y, inside = picture.inside;
    const lines = [0, 1, -1].map(function (level) { return { level: level, path: shape("path", { "class": level ? "margin" : "line" }, inside) }; });
    const marks = scene.X.map(function (row, i) {
      const x = sx(row[0]), y = sy(row[1]);
      const size = scene.y[i] > 0 ? "M" + (x - 4) + " " + y + "h8M" + x + " " + (y - 4) + "v8" : "";
      return size ? shape("path", { d: size, "class": "plus", style: "stroke:var(--plus);stroke-width:2.4" }, inside)
        : shape("circle", { cx: x, cy: y, r: 3.6, "class": "minus" }, inside);
    });
    const rings = shape("g", {}, inside);
    return function (frame) {
      lines.forEach(function (line) {
        const ends = segment(frame.w, frame.w[2] - line.level, reach.mx, reach.my, reach.r);
        line.path.setAttribute("d", ends ? "M" + sx(ends[0][0]) + " " + sy(ends[0][1]) + "L" + sx(ends[1][0]) + " " + sy(ends[1][1]) : "");
      });
      const aside = new Set(frame.allAside);
      marks.forEach(function (mark, i) { mark.classList.toggle("aside", aside.has(i)); });
      rings.replaceChildren();
      frame.rows.forEach(function (i) { shape("circle", { cx: sx(scene.X[i][0]), cy: sy(scene.X[i][1]), r: 8, "class": "ring" }, rings); });
    };
  }

  function weightPlane(parent, run) {
    const box = titled(parent, "The weights"), wide = widthOf(box);
    const picture = axes(box, wide, wide - 16, [-weights, weights], [-weights, weights], { title: "the path of w" });
    const s = picture.x, t = picture.y, inside = picture.inside;
    shape("path", { d: "M" + picture.left + " " + t(0) + "H" + picture.right + "M" + s(0) + " " + picture.top + "V" + picture.bottom, "class": "axis" }, inside);
    const radius = (scene.ball || 1 / Math.sqrt(scene.lam)) / weights * (picture.right - picture.left) / 2;
    shape("circle", { cx: s(0), cy: t(0), r: radius, "class": "thin" + (scene.ball && run.kind === "pegasos" ? "" : " dashed") }, inside);
    const trail = shape("path", { "class": "line", style: "stroke-width:1;opacity:.7" }, inside);
    const ox = s(scene.optimum[0]), oy = t(scene.optimum[1]);
    shape("path", { d: "M" + (ox - 6) + " " + (oy - 6) + "l12 12m0 -12l-12 12", "class": "cross" }, inside);
    const dot = shape("circle", { r: 5, "class": "dot" }, inside);
    return function (frame, index) {
      const path = run.frames.slice(Math.max(0, index - 60), index + 1).map(function (one) { return s(one.w[0]).toFixed(1) + " " + t(one.w[1]).toFixed(1); });
      trail.setAttribute("d", "M" + path.join("L"));
      set(dot, { cx: s(frame.w[0]), cy: t(frame.w[1]) });
    };
  }

  function lossPicture(parent, run) {
    const box = titled(parent, "The lower plane under the loss of the row just drawn");
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
      const m = Math.max(-3, Math.min(4, run.kind === "pegasos" ? p[0] : p[3]));
      set(dot, { cx: x(m), cy: y(p[run.kind === "pegasos" ? 2 : 5] - p[run.kind === "pegasos" ? 1 : 4] * m) });
    };
  }

  function bars(parent, run) {
    const words = run.kind === "pegasos" ? "How often each row was violated when drawn" : "b of each row";
    const box = titled(parent, words);
    const picture = axes(box, widthOf(box), 130, [0.5, n + 0.5], [0, scene.largest], { title: words, across: "row" });
    const y = picture.y, width = (picture.right - picture.left) / n, base = picture.bottom;
    const all = scene.y.map(function (sign, i) {
      return shape("rect", { x: picture.left + i * width, width: Math.max(1, 0.8 * width), "class": "bar " + (sign > 0 ? "plus" : "minus") }, picture.inside);
    });
    const mark = shape("path", { "class": "ring" }, picture.svg);
    return function (frame) {
      const aside = new Set(frame.allAside);
      all.forEach(function (bar, i) {
        const top = y(Math.max(frame.allB[i], 0.004 * scene.largest));
        set(bar, { y: top, height: base - top });
        bar.classList.toggle("aside", aside.has(i));
      });
      const i = frame.rows[0];
      mark.setAttribute("d", i === undefined ? "" : "M" + (picture.left + (i + 0.4) * width) + " " + (base + 8) + "l-4 0l4 -7l4 7z");
    };
  }

  function objectives() {
    const home = byId("objectives");
    const values = [];
    scene.runs.forEach(function (run) { run.frames.forEach(function (f) { values.push(f.primal, f.dual); }); });
    const top = Math.min(Math.max.apply(null, values), 2.2 * Math.max(scene.lowest, 1e-12));
    const bottom = Math.min(0, Math.max(Math.min.apply(null, values), -0.2 * top));
    const across = clock === "touched" ? "rows touched" : "seconds";
    const picture = axes(home, widthOf(home), 190, [0, end()], [bottom, top], { title: "primal and dual objectives of all runs", across: across });
    const svg = picture.inside, x = picture.x, y = picture.y;
    shape("path", { d: "M" + picture.left + " " + y(scene.lowest) + "H" + picture.right, "class": "thin dashed" }, svg);
    scene.runs.forEach(function (run, number) {
      ["primal", "dual"].forEach(function (which) {
        const points = run.frames.map(function (f) { return x(f[clock]).toFixed(1) + " " + y(Math.max(bottom, Math.min(top, f[which]))).toFixed(1); });
        shape("path", { d: "M" + points.join("L"), "class": "line run" + number + (which === "dual" ? " dashed" : "") }, svg);
      });
    });
    const words = element("p", { "class": "soft" }, home);
    scene.runs.forEach(function (run, number) { element("b", { style: "color:var(--run" + number + ")" }, words, run.label + " "); });
    element("span", {}, words, "Primal full, dual dashed; the thin line is the optimum, " + short(scene.lowest) + ".");
    const cursor = shape("path", { "class": "cursor" }, svg);
    return function (now) { cursor.setAttribute("d", "M" + x(now) + " " + picture.top + "V" + picture.bottom); };
  }

  function end() {
    return Math.max.apply(null, scene.runs.map(function (run) { return run.frames[run.frames.length - 1][clock]; }));
  }

  function at(run, now) {
    let low = 0, high = run.frames.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (run.frames[middle][clock] <= now) low = middle; else high = middle - 1;
    }
    return low;
  }

  function wind() {
    const seen = new Set();
    scene.runs.forEach(function (run) { run.frames.forEach(function (frame) { seen.add(frame[clock]); }); });
    ticks = Array.from(seen).sort(function (a, b) { return a - b; });
    byId("slider").max = ticks.length - 1;
    byId("objectives").replaceChildren();
    moveCursor = objectives();
  }

  function show(step) {
    place = Math.max(0, Math.min(ticks.length - 1, step));
    const now = ticks[place];
    views.forEach(function (view) {
      const index = at(view.run, now), frame = view.run.frames[index];
      view.plane(frame); view.weights(frame, index); view.loss(frame); view.bars(frame);
      view.told.textContent = told(view.run, frame, index > 0, scene);
    });
    moveCursor(now);
    byId("slider").value = place;
    byId("now").textContent = clock === "touched" ? now + " of " + end() + " rows" : short(now) + " of " + short(end()) + " s";
    document.body.dataset.step = place;
    if (place === ticks.length - 1) pause();
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    byId("play").textContent = "Play";
    byId("play").setAttribute("aria-pressed", "false");
  }

  function play() {
    if (place === ticks.length - 1) show(0);
    timer = setInterval(function () { show(place + 1); }, 1000 / Number(byId("speed").value));
    byId("play").textContent = "Pause";
    byId("play").setAttribute("aria-pressed", "true");
  }

  function toggle() { if (timer) pause(); else play(); }

  function jump(step) { pause(); show(step); }

  let moveCursor = function () {}, views = [], width = 0;

  function draw() {
    width = document.documentElement.clientWidth;
    byId("runs").replaceChildren();
    scene.runs.forEach(function (run, number) {
      element("section", { "class": "run run" + number, "aria-label": run.label }, byId("runs"));
    });
    views = scene.runs.map(build);
    wind();
    show(place);
  }

  if (window.self !== window.top) document.body.classList.add("embedded");
  window.addEventListener("resize", function () { if (document.documentElement.clientWidth !== width) draw(); });
  byId("play").addEventListener("click", toggle);
  byId("back").addEventListener("click", function () { jump(place - 1); });
  byId("forward").addEventListener("click", function () { jump(place + 1); });
  byId("first").addEventListener("click", function () { jump(0); });
  byId("end").addEventListener("click", function () { jump(ticks.length - 1); });
  byId("slider").addEventListener("input", function (event) { jump(Number(event.target.value)); });
  byId("speed").addEventListener("change", function () { if (timer) { pause(); play(); } });
  byId("clock").addEventListener("change", function (event) {
    const share = place / Math.max(1, ticks.length - 1);
    clock = event.target.value;
    wind();
    jump(Math.round(share * (ticks.length - 1)));
  });
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    const far = event.shiftKey ? 10 : 1;
    const keys = { ArrowRight: place + far, ArrowLeft: place - far, Home: 0, End: ticks.length - 1 };
    if (event.key in keys) jump(keys[event.key]);
    else if (event.key === " " && event.target.tagName !== "BUTTON") toggle();
    else return;
    event.preventDefault();
  });
  draw();
})();
