"use strict";
// Buttons above a figure: of its drawings, show the one that belongs to the buttons that are pressed.
document.querySelectorAll("figure.choices").forEach(function (figure) {
  figure.addEventListener("change", function () {
    const pressed = Array.from(figure.querySelectorAll("input:checked"), function (one) { return one.value; });
    figure.querySelectorAll(".chart").forEach(function (chart) {
      chart.hidden = chart.dataset.keys !== JSON.stringify(pressed);
    });
  });
});
