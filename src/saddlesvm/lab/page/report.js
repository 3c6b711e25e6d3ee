"use strict";
(function () {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };

  function colours(printing) {
    const night = dark.matches && !printing;
    return {
      ink: night ? "#e6e9ec" : "#1c1f23", rule: night ? "#363d45" : "#e1e5ea", faint: "#8a949e", 
      box: night ? "#1d2226" : "#ffffff",
    };
  }

  function axis(given, theme) {
    return Object.assign({ gridcolor: theme.rule, zerolinecolor: theme.rule, linecolor: theme.rule }, given);
  }

  function themed(layout, printing) {
    const theme = colours(printing);
    return Object.assign({}, layout, {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: theme.ink, size: narrow.matches ? 11 : 12 },
      hoverlabel: { bgcolor: theme.box, bordercolor: theme.rule, font: { color: theme.ink }, namelength: -1 },
      legend: { orientation: "h", yanchor: "bottom", y: 1.02, xanchor: "left", x: 0 },
      margin: { l: 60, r: 36, t: 30, b: 48 },
      modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: theme.faint, activecolor: theme.ink },
      dragmode: narrow.matches ? false : "zoom",
      xaxis: axis(layout.xaxis, theme),
      yaxis: axis(layout.yaxis, theme),
    });
  }

  function inked(data, printing) { // words in squares are in the page's ink
    const ink = colours(printing).ink;
    return data.map(function (one) { return one.texttemplate ? Object.assign({ textfont: { color: ink } }, one) : one; });
  }

  function place(number) {
    return document.getElementById("chart-" + number);
  }

  function switchesOf(number) {
    return Array.from(place(number).parentNode.querySelectorAll("fieldset"));
  }

  function chosen(number) {
    const chart = charts[number];
    if (!chart.choices) { return chart; }
    const picked = switchesOf(number).map(function (row) { return row.querySelector("input:checked").value; });
    return chart.choices.find(function (one) {
      return one.keys.every(function (key, k) { return key === picked[k]; });
    });
  }

  function draw(number) {
    const element = place(number);
    if (!element.dataset.drawn) {
      element.dataset.drawn = "yes";
      const chart = chosen(number);
      Plotly.newPlot(element, inked(chart.data, false), themed(chart.layout, false), config);
      switchesOf(number).forEach(function (row) {
        row.addEventListener("change", function () {
          const other = chosen(number);
          Plotly.react(element, inked(other.data, false), themed(other.layout, false), config);
        });
      });
    }
  }

  async function unpack() {
    const text = document.getElementById("library").textContent;
    const bytes = Uint8Array.from(atob(text), function (letter) { return letter.charCodeAt(0); });
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  function recolour(printing) {
    const theme = colours(printing);
    charts.forEach(function (chart, number) {
      if (place(number).dataset.drawn) {
        const change = { "font.color": theme.ink, "hoverlabel.bgcolor": theme.box, "hoverlabel.font.color": theme.ink };
        ["xaxis", "yaxis"].forEach(function (name) {
          ["gridcolor", "zerolinecolor", "linecolor"].forEach(function (part) {
            change[name + "." + part] = theme.rule;
          });
        });
        const square = place(number).classList.contains("square");
        change.width = printing ? (square ? 520 : 660) : null;
        change.height = printing ? (square ? 480 : 350) : null;
        change.autosize = !printing;
        Plotly.relayout(place(number), change);
        const data = chosen(number).data;
        if (data.some(function (one) { return one.texttemplate; })) {
          Plotly.restyle(place(number), { "textfont.color": theme.ink });
        }
      }
    });
  }

  const near = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (entry.isIntersecting) {
        draw(Number(entry.target.id.slice("chart-".length)));
        near.unobserve(entry.target);
      }
    });
  }, { rootMargin: "600px" });

  function begin() {
    charts.forEach(function (chart, number) { near.observe(place(number)); });
    dark.addEventListener("change", function () { recolour(false); });
    window.addEventListener("beforeprint", function () {
      charts.forEach(function (chart, number) { draw(number); });
      recolour(true);
    });
    window.addEventListener("afterprint", function () { recolour(false); });
  }

  unpack().then(begin).catch(function () {
    charts.forEach(function (chart, number) {
      place(number).textContent = "This figure needs a browser of 2023 or later.";
    });
  });
})();
