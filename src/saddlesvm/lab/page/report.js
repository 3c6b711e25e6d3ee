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

  function place(number) {
    return document.getElementById("chart-" + number);
  }

  function draw(number) {
    const element = place(number);
    if (!element.dataset.drawn) {
      element.dataset.drawn = "yes";
      Plotly.newPlot(element, charts[number].data, themed(charts[number].layout, false), config);
    }
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
  charts.forEach(function (chart, number) { near.observe(place(number)); });

  dark.addEventListener("change", function () { recolour(false); });
  window.addEventListener("beforeprint", function () {
    charts.forEach(function (chart, number) { draw(number); });
    recolour(true);
  });
  window.addEventListener("afterprint", function () { recolour(false); });
})();
