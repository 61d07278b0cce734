"use strict";
// Draws the charts one after the other, sorts tables, and says on the page when a chart failed.
(() => {
  const root = document.documentElement;
  const state = { drawn: 0, failed: 0 };
  const publish = () => {
    root.dataset.chartsDrawn = String(state.drawn);
    root.dataset.chartsFailed = String(state.failed);
  };
  // Only what stays on this machine: no button that publishes a chart somewhere.
  const config = { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "resetScale2d"]] };

  function complain(text) {
    state.failed += 1;
    publish();
    const line = document.createElement("div");
    line.className = "banner error";
    line.textContent = "A part of this report could not be shown: " + text;
    document.querySelector(".banners").append(line);
  }
  window.addEventListener("error", (event) => complain(event.message));
  window.addEventListener("unhandledrejection", (event) => complain(String(event.reason)));

  async function draw(figure) {
    const place = figure.querySelector(".chart");
    const source = JSON.parse(figure.querySelector("script").textContent);
    await Plotly.newPlot(place, source.data, source.layout, config);
    state.drawn += 1;
    publish();
  }

  async function drawAll() {
    publish();
    for (const figure of document.querySelectorAll("figure")) {
      try {
        await draw(figure);
      } catch (error) {
        complain(String(error));
      }
    }
    root.dataset.finished = "yes";
  }

  function order(a, b) {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  }

  function sortBy(heading) {
    const row = heading.parentElement;
    const column = [...row.children].indexOf(heading);
    const descending = heading.getAttribute("aria-sort") !== "descending";
    for (const other of row.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = heading.closest("table").tBodies[0];
    const key = (line) => line.children[column].dataset.key ?? line.children[column].textContent;
    const lines = [...body.rows].sort((a, b) => order(key(a), key(b)) * (descending ? -1 : 1));
    body.append(...lines);
  }

  for (const heading of document.querySelectorAll("table.sortable th")) {
    heading.querySelector("button").addEventListener("click", () => sortBy(heading));
  }
  window.addEventListener("beforeprint", () => {
    for (const place of document.querySelectorAll(".chart")) Plotly.Plots.resize(place);
  });
  drawAll();
})();
