"use strict";
// Draw a plot in each figure of class "scatter" from the JSON inside the figure.
(() => {
  const OUTLINES = {
    circle: "M7 1.5a5.5 5.5 0 1 0 .01 0Z",
    "triangle-up": "M7 1.5L13 12H1Z",
    square: "M2 2H12V12H2Z",
    diamond: "M7 .5L13.5 7L7 13.5L.5 7Z",
    "triangle-down": "M7 12.5L13 2H1Z",
    cross: "M5 1H9V5H13V9H9V13H5V9H1V5H5Z",
    x: "M4 1L7 4L10 1L13 4L10 7L13 10L10 13L7 10L4 13L1 10L4 7L1 4Z",
    "triangle-left": "M1.5 7L12 1V13Z",
    "triangle-right": "M12.5 7L2 1V13Z",
    pentagon: "M7 1L13 5.5L10.7 12.5H3.3L1 5.5Z",
  };
  const SVG = "http://www.w3.org/2000/svg"; // a name, not a request
  const LONGEST = 60; // characters of a text in a hover label
  const NARROW = 600; // pixels below which axes have short names
  const PAPER = [640, 420]; // width and height of a printed plot, in pixels
  const HINT = "Hover over a point, or use the keys ← and →.";
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Text from the data is set by textContent only, so that it stays text.
  function element(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  // plotly reads a few tags and entities in its labels; with these three escaped it finds none.
  function plain(text, longest = LONGEST) {
    const line = String(text).replace(/\s+/g, " ");
    const letters = Array.from(line);
    const short = letters.length > longest ? letters.slice(0, longest - 1).join("") + "…" : line;
    return short.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  class Scatter {
    constructor(figure) {
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.printing = false;
      this.across = 0;
      this.up = 1;
      this.at = null; // the row that the keyboard is at
      this.hidden = new Set();
      this.rows = this.data.groups.map(() => []);
      this.data.codes.forEach((code, row) => this.rows[code].push(row));
      this.entries = []; // of the legend: group, button and marker
      this.build(figure);
      Plotly.newPlot(this.plot, this.traces(), this.layout(), {
        responsive: true,
        displaylogo: false,
        displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
        // plotly's default buttons include one that sends the data to plotly.
        modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
        showSendToCloud: false,
        plotlyServerURL: "",
      }).then(() => {
        for (const event of ["plotly_hover", "plotly_click"]) { // touch only clicks
          this.plot.on(event, ({ points }) => this.say(this.rowOf(points[0])));
        }
        figure.dataset.ready = "true";
      });
    }

    build(figure) {
      const caption = figure.querySelector("figcaption");
      const parts = [this.controls(), this.legend()];
      this.plot = element("div", "scatter-plot");
      this.plot.tabIndex = 0;
      this.plot.setAttribute("role", "application");
      this.plot.setAttribute(
        "aria-label", this.data.words + " Left and right keys move through the points.");
      this.plot.addEventListener("keydown", (event) => this.key(event));
      this.line = element("p", "scatter-line", HINT);
      this.line.setAttribute("aria-live", "polite");
      for (const part of [...parts, this.plot, this.line]) {
        if (part) figure.insertBefore(part, caption);
      }
    }

    controls() {
      if (this.data.axes.length < 3) return null;
      const box = element("div", "scatter-controls");
      for (const [name, key] of [["Horizontal", "across"], ["Vertical", "up"]]) {
        const label = element("label", "", name + " ");
        const select = element("select");
        this.data.titles.forEach((title, i) => select.add(new Option(title, i)));
        select.value = this[key];
        select.addEventListener("change", () => {
          this[key] = Number(select.value);
          this.draw();
        });
        label.append(select);
        box.append(label);
      }
      return box;
    }

    legend() {
      const { groups, label, values } = this.data;
      const shown = [...groups.keys()].slice(values ? 1 : 0); // a colour scale needs no legend
      if (label === undefined || !shown.length) return null;
      const box = element("div", "scatter-legend");
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", `Show or hide: ${label}`);
      box.append(element("span", "", label));
      if (shown.length > 2) {
        for (const [name, hide] of [["Show all", false], ["Hide all", true]]) {
          const button = element("button", "scatter-all", name);
          button.type = "button";
          button.addEventListener("click", () => this.toggle(shown, hide));
          box.append(button);
        }
      }
      shown.forEach((i) => box.append(this.entry(i)));
      this.mark();
      return box;
    }

    entry(i) {
      const { name, symbol } = this.data.groups[i];
      const button = element("button");
      button.type = "button";
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("viewBox", "0 0 14 14");
      svg.setAttribute("aria-hidden", "true");
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", OUTLINES[symbol]);
      svg.append(path);
      const count = element("small", "", this.rows[i].length);
      button.append(svg, element("span", "", name.trim() || "(empty)"), count);
      button.addEventListener("click", () => this.toggle([i], !this.hidden.has(i)));
      this.entries.push({ i, button, path });
      return button;
    }

    // ---------------------------------------------------------------- drawing

    isDark() {
      return dark.matches && !this.printing;
    }

    color(i) {
      const group = this.data.groups[i];
      return this.isDark() ? group.dark : group.color;
    }

    // Thin edges keep neighbours apart, yellow visible on white and dark values on a dark page.
    edge(i) {
      if (!this.isDark()) return "#333333";
      return this.data.values && i === 0 ? "#a9b3bd" : "#14181d";
    }

    fields(row) {
      const { data } = this;
      const found = [];
      if (data.label !== undefined) {
        const group = data.groups[data.codes[row]].name;
        found.push([data.label, data.values ? data.values[row] : group]);
      }
      found.push(...data.details.map(([name, values]) => [name, values[row]]));
      found.push(...[this.across, this.up].map((i) => [data.axes[i], data.coordinates[i][row]]));
      return found.map(([name, value]) => [name, value === null ? "missing" : value]);
    }

    text(row) {
      const lines = this.fields(row).map(([name, value]) => `${plain(name)}: ${plain(value)}`);
      return [`<b>${plain(this.data.ids[row])}</b>`, ...lines].join("<br>");
    }

    traces() {
      const { coordinates, groups, size, values, label } = this.data;
      return groups.map((group, i) => ({
        type: "scatter",
        mode: "markers",
        name: plain(group.name),
        x: this.rows[i].map((row) => coordinates[this.across][row]),
        y: this.rows[i].map((row) => coordinates[this.up][row]),
        hoverinfo: "text",
        hovertext: this.rows[i].map((row) => this.text(row)),
        visible: !this.hidden.has(i),
        marker: {
          size,
          symbol: group.symbol,
          opacity: 0.85,
          line: { width: 0.5, color: this.edge(i) },
          ...(values && i === 0
            ? {
                color: this.rows[0].map((row) => values[row]),
                colorscale: "Cividis",
                colorbar: {
                  title: { text: plain(label), side: "right" },
                  thickness: 12,
                  outlinewidth: 0,
                },
              }
            : { color: this.color(i) }),
        },
      }));
    }

    layout() {
      const narrow = this.plot.clientWidth < NARROW;
      const titles = narrow ? this.data.axes : this.data.titles;
      const longest = narrow ? 30 : LONGEST;
      return {
        showlegend: false,
        hovermode: "closest",
        // touch scrolls the page
        dragmode: matchMedia("(hover: hover)").matches ? "zoom" : false,
        margin: { l: 55, r: 10, t: 30, b: 50 },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        hoverlabel: { align: "left", namelength: 0 },
        font: { family: "system-ui, sans-serif", size: 13 },
        xaxis: { title: { text: plain(titles[this.across], longest) }, automargin: true },
        yaxis: { title: { text: plain(titles[this.up], Math.min(longest, 42)) }, automargin: true },
      };
    }

    draw() {
      this.at = null;
      return Plotly.react(this.plot, this.traces(), this.layout());
    }

    // Colours of axes and labels follow the page's style sheet; those of the points are set here.
    repaint() {
      this.mark();
      const all = [...this.data.groups.keys()];
      const painted = all.slice(this.data.values ? 1 : 0);
      Plotly.restyle(this.plot, { "marker.line.color": all.map((i) => this.edge(i)) }, all);
      if (painted.length) {
        Plotly.restyle(this.plot, { "marker.color": painted.map((i) => this.color(i)) }, painted);
      }
    }

    mark() {
      for (const { i, button, path } of this.entries) {
        path.setAttribute("fill", this.color(i));
        path.setAttribute("stroke", this.edge(i));
        path.setAttribute("stroke-width", "0.5");
        button.setAttribute("aria-pressed", String(!this.hidden.has(i)));
      }
    }

    toggle(groups, hide) {
      groups.forEach((i) => (hide ? this.hidden.add(i) : this.hidden.delete(i)));
      this.at = null;
      this.mark();
      Plotly.restyle(this.plot, { visible: groups.map((i) => !this.hidden.has(i)) }, groups);
    }

    print(on) {
      this.printing = on;
      Plotly.Fx.unhover(this.plot);
      const [width, height] = on ? PAPER : [null, null];
      Plotly.relayout(this.plot, { width, height, autosize: !on });
      this.repaint();
    }

    // ---------------------------------------------------------------- reading

    rowOf(point) {
      return this.rows[point.curveNumber][point.pointNumber];
    }

    say(row) {
      const fields = this.fields(row).map(([name, value]) => `${name}: ${value}`);
      this.line.textContent = [this.data.ids[row], ...fields].join(" · ");
    }

    // Rows of the visible points, from left to right.
    order() {
      const { xaxis, yaxis } = this.plot.layout;
      const [x, y] = [this.across, this.up].map((i) => this.data.coordinates[i]);
      const inside = (value, [low, high]) => value >= low && value <= high;
      return this.data.codes
        .map((_, row) => row)
        .filter((row) => !this.hidden.has(this.data.codes[row]))
        .filter((row) => inside(x[row], xaxis.range) && inside(y[row], yaxis.range))
        .sort((a, b) => x[a] - x[b] || a - b);
    }

    key(event) {
      const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
      if (event.key === "Escape") Plotly.Fx.unhover(this.plot);
      if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      const order = this.order();
      if (!order.length) return;
      const last = order.length - 1;
      const step = steps[event.key];
      const now = order.indexOf(this.at);
      const next = now < 0 && Number.isFinite(step) ? (step > 0 ? 0 : last) : now + step;
      this.at = order[Math.min(Math.max(next, 0), last)];
      const curveNumber = this.data.codes[this.at];
      const pointNumber = this.rows[curveNumber].indexOf(this.at);
      Plotly.Fx.hover(this.plot, [{ curveNumber, pointNumber }]);
      this.say(this.at);
    }
  }

  const figures = document.querySelectorAll("figure.scatter");
  const scatters = Array.from(figures, (figure) => new Scatter(figure));
  dark.addEventListener("change", () => scatters.forEach((scatter) => scatter.repaint()));
  addEventListener("beforeprint", () => scatters.forEach((scatter) => scatter.print(true)));
  addEventListener("afterprint", () => scatters.forEach((scatter) => scatter.print(false)));
})();
