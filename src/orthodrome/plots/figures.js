"use strict";
// Buttons below each drawing: save it as SVG, or print it alone, for example to a PDF file.
(() => {
  const PROPERTIES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "opacity",
    "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "font-size", "font-family",
    "font-weight", "text-anchor", "display"];

  // Return the drawing of a figure as the text of a file, in light colours.
  function drawing(figure) {
    const svg = figure.querySelector(".scatter-plot > svg, svg.drawing");
    const { width, height } = svg.getBoundingClientRect();
    const paper = document.createElement("div");
    paper.className = `${svg.parentNode.className} paper`;
    paper.style = `position: absolute; visibility: hidden; width: ${width}px; height: ${height}px`;
    const copy = svg.cloneNode(true);
    paper.append(copy);
    figure.append(paper);
    if (figure.scatter) figure.scatter.addKey(copy, width, height);
    for (const node of copy.querySelectorAll("*")) {
      const style = getComputedStyle(node);
      // Glyphs and markers are defined once; what they do not set comes from the place of use.
      const shared = node.closest("defs") !== null;
      const own = PROPERTIES.filter((p) => !shared || node.style.getPropertyValue(p) !== "");
      node.setAttribute("style", own.map((p) => `${p}:${style.getPropertyValue(p)}`).join(";"));
    }
    paper.remove();
    copy.removeAttribute("class");
    copy.setAttribute("style", "background:#ffffff");
    return new XMLSerializer().serializeToString(copy);
  }

  function save(figure, number) {
    const url = URL.createObjectURL(new Blob([drawing(figure)], { type: "image/svg+xml" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `figure-${number}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  function print(figure) {
    document.body.classList.add("alone");
    figure.classList.add("printed");
    addEventListener("afterprint", () => {
      document.body.classList.remove("alone");
      figure.classList.remove("printed");
    }, { once: true });
    window.print();
  }

  let number = 0;
  for (const figure of document.querySelectorAll("figure")) {
    if (!figure.matches(".scatter") && !figure.querySelector("svg.drawing")) continue;
    const own = number += 1;
    const box = document.createElement("div");
    box.className = "save";
    const actions = { "Save SVG": () => save(figure, own), "Print or PDF": () => print(figure) };
    for (const [text, action] of Object.entries(actions)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", action);
      box.append(button);
    }
    figure.append(box);
  }
})();
