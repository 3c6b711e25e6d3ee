(function () {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  let clock = "touched", ticks = [], place = 0, timer = null;

  function byId(name) { return document.getElementById(name); }

  /* b and the rows set aside at every frame, from the changes that the frames hold. */
  scene.runs.forEach(function (run) {
    let b = new Float32Array(scene.y.length), aside = [];
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
    const words = element("p", { "class": "told", id: "told" + number }, home);
    return { run: run, told: words, panels: panelsOf(scene, run, home) };
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
      view.panels.forEach(function (panel) { panel(frame, index); });
      view.told.textContent = told(view.run, frame, index > 0);
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
