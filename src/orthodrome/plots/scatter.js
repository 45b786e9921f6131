"use strict";
// Draw a plot in each figure of class "scatter" from the JSON inside the figure.
// Text from the data is set by textContent only, so that it stays text.
(() => {
  const OUTLINES = { // around the point (0, 0), about 12 wide
    o: "m0-5.5a5.5 5.5 0 1 0 .01 0z", "^": "m0-5.5l6 10.5h-12z", s: "m-5-5h10v10h-10z",
    D: "m0-6.5l6.5 6.5-6.5 6.5-6.5-6.5z", v: "m0 5.5l6-10.5h-12z", "<": "m-5.5 0l10.5-6v12z",
    ">": "m5.5 0l-10.5-6v12z", p: "m0-6l6 4.5-2.3 7h-7.4l-2.3-7z",
    P: "m-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    X: "m-3-6l3 3 3-3 3 3-3 3 3 3-3 3-3-3-3 3-3-3 3-3-3-3z",
  };
  const HINT = "Point at a mark, tap it, or use the keys ← and → to see its row. Drag to move the "
    + "plot; click it to zoom with the wheel.";
  const REACH = 20; // pixels from the pointer to a point

  function make(parent, tag, { text, ...attributes } = {}, space = "1999/xhtml") {
    const node = document.createElementNS("http://www.w3.org/" + space, tag); // no request
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }
  const draw = (parent, tag, attributes) => make(parent, tag, attributes, "2000/svg");

  function button(parent, text, action, attributes) {
    const node = make(parent, "button", { type: "button", text, ...attributes });
    node.addEventListener("click", action);
    return node;
  }

  function extent(values) {
    return values.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [1 / 0, -1 / 0]);
  }

  function ticks([low, high], most) {
    const power = 10 ** Math.floor(Math.log10((high - low) / most));
    const step = power * [1, 2, 5, 10].find((n) => n * power * most >= high - low);
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
  }

  function tickText(value) {
    const text = String(Number(value.toPrecision(6)));
    return text.length > 8 ? value.toExponential(1) : text;
  }

  function shortened(text) {
    const letters = Array.from(text.replace(/\s+/g, " "));
    return letters.length > 40 ? letters.slice(0, 39).join("") + "…" : letters.join("");
  }

  class Scatter {
    constructor(figure) {
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.axes = [0, 1]; // the coordinates drawn across and up
      this.hidden = new Set(); // groups
      this.pressed = new Map(); // pointers and their positions
      const box = make(figure, "div");
      this.addControls(make(box, "div", { class: "scatter-controls" }));
      const legend = make(box, "div", { class: "scatter-legend", role: "group" });
      const keys = " Left and right keys move through the points; plus and minus zoom; 0 resets.";
      this.plot = make(box, "div", { class: "scatter-plot", tabindex: 0, role: "application",
        "aria-label": this.data.words + keys });
      this.line = make(box, "p", { class: "scatter-line", "aria-live": "polite", text: HINT });
      figure.insertBefore(box, figure.querySelector("figcaption"));
      this.addPoints();
      if (this.data.label !== undefined) this.addLegend(legend);
      this.listen();
      this.reset();
      new ResizeObserver(() => this.draw()).observe(this.plot);
      figure.scatter = this;
      figure.classList.add("drawn");
    }

    addControls(box) {
      const names = this.data.axes.length > 2 ? ["Horizontal", "Vertical"] : [];
      names.forEach((text, axis) => {
        const select = make(make(box, "label", { text: text + " " }), "select");
        this.data.titles.forEach((title, i) => select.add(new Option(title, i)));
        select.value = axis;
        select.addEventListener("change", () => {
          this.axes[axis] = Number(select.value);
          this.reset();
        });
      });
      const zoom = make(box, "span");
      button(zoom, "Zoom in", () => this.zoom(0.7));
      button(zoom, "Zoom out", () => this.zoom(1 / 0.7));
      button(zoom, "Reset view", () => this.reset());
    }

    addPoints() {
      const { groups, codes, size } = this.data;
      this.svg = draw(this.plot, "svg", { "aria-hidden": true });
      this.grid = draw(this.svg, "g");
      this.inside = draw(this.svg, "svg"); // clips the points
      const layer = draw(this.inside, "g", { transform: `scale(${size / 12})` });
      this.paths = groups.map((group) => this.addMark(layer, group));
      this.rows = groups.map(() => []);
      codes.forEach((code, row) => this.rows[code].push(row));
      this.ring = draw(this.inside, "circle", { class: "scatter-ring", r: size / 2 + 4 });
      this.tip = make(this.plot, "div", { class: "scatter-tip" });
    }

    addMark(parent, { color, dark, marker }) {
      return draw(parent, "path", { class: "scatter-mark", d: "M0 0" + OUTLINES[marker],
        style: `--light:${color};--dark:${dark}` });
    }

    addLegend(box) {
      const { groups, label } = this.data;
      box.setAttribute("aria-label", `Show or hide: ${label}`);
      make(box, "span", { text: label });
      const named = [...groups.keys()];
      if (named.length > 2) {
        const all = { class: "scatter-all" };
        button(box, "Show all", () => named.forEach((i) => this.toggle(i, false)), all);
        button(box, "Hide all", () => named.forEach((i) => this.toggle(i, true)), all);
      }
      this.entries = {};
      for (const i of named) {
        const entry = button(box, "", () => this.toggle(i, !this.hidden.has(i)));
        this.addMark(draw(entry, "svg", { viewBox: "-7 -7 14 14", "aria-hidden": true }), groups[i]);
        make(entry, "span", { text: groups[i].name.trim() || "(empty)" });
        make(entry, "small", { text: this.rows[i].length });
        this.entries[i] = entry;
        this.toggle(i, false);
      }
    }

    addKey(svg, width, height) { // the legend, above a copy of the plot
      const { groups, label } = this.data;
      const shown = [...groups.keys()].filter((i) => !this.hidden.has(i));
      const named = label === undefined ? [] : shown;
      const key = draw(svg, "g");
      let [x, y] = [66, 16];
      for (const i of [undefined, ...named]) {
        const text = i === undefined ? label ?? "" : groups[i].name.trim() || "(empty)";
        const space = 34 + 7.5 * text.length;
        if (x + space > width) [x, y] = [66, y + 22];
        if (i !== undefined) {
          this.addMark(key, groups[i]).setAttribute("transform", `translate(${x},${y - 4})`);
        }
        draw(key, "text", { x: x + 12, y, text, class: "start" });
        x += space;
      }
      svg.querySelectorAll(".scatter-ring").forEach((ring) => ring.remove());
      svg.setAttribute("viewBox", `0 ${-y - 8} ${width} ${height + y + 8}`);
      key.setAttribute("transform", `translate(0,${-y - 8})`);
    }

    toggle(i, hide) {
      this.hidden[hide ? "add" : "delete"](i);
      this.paths[i].style.display = hide ? "none" : "";
      this.entries[i].setAttribute("aria-pressed", !hide);
      this.show();
    }

    // ---------------------------------------------------------------- view

    pixel(axis, value) {
      const [[low, high], [from, to]] = [this.view[axis], this.box[axis]];
      return from + (value - low) / (high - low) * (to - from);
    }

    value(axis, pixel) {
      const [[low, high], [from, to]] = [this.view[axis], this.box[axis]];
      return low + (pixel - from) / (to - from) * (high - low);
    }

    place(row) {
      return this.axes.map((i, axis) => this.pixel(axis, this.data.coordinates[i][row]));
    }

    reset() {
      this.width = 1; // of the view, relative to the data
      this.view = this.axes.map((i) => {
        const [low, high] = extent(this.data.coordinates[i]);
        const margin = (high - low) / 20 || Math.abs(low) / 20 || 1;
        return [low - margin, high + margin];
      });
      this.draw();
    }

    zoom(factor, at = this.box.map(([from, to]) => (from + to) / 2)) {
      if (this.width * factor < 1e-3 || this.width * factor > 5) return;
      this.width *= factor;
      const center = at.map((pixel, axis) => this.value(axis, pixel));
      this.view = this.view.map((ends, a) => ends.map((end) => center[a] + factor * (end - center[a])));
      this.redraw();
    }

    pan(moved) {
      this.view = this.box.map((ends, a) => ends.map((end) => this.value(a, end - moved[a])));
      this.redraw();
    }

    redraw() { // at most once per frame
      this.frame ??= requestAnimationFrame(() => this.draw());
    }

    draw() {
      this.frame = undefined;
      const { clientWidth: width, clientHeight: height } = this.plot;
      this.box = [[66, width - 12], [height - 48, 10]];
      const area = [66, 10, Math.max(width - 78, 1), Math.max(height - 58, 1)];
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.inside.setAttribute("viewBox", area.join(" "));
      ["x", "y", "width", "height"].forEach((name, i) => this.inside.setAttribute(name, area[i]));
      // a finger scrolls the page, or moves a plot that is zoomed
      this.plot.style.touchAction = this.width === 1 ? "pan-x pan-y" : "none";
      this.drawAxes(width, height);
      const unit = this.data.size / 12;
      this.rows.forEach((rows, i) => {
        const outline = OUTLINES[this.data.groups[i].marker];
        const marks = rows.map((row) => `M${this.place(row).map((x) => (x / unit).toFixed(1))}`);
        this.paths[i].setAttribute("d", marks.map((mark) => mark + outline).join(""));
      });
      this.show();
    }

    drawAxes(width, height) {
      const names = width < 600 ? this.data.axes : this.data.titles;
      const [[left, right], [bottom, top]] = this.box;
      const [x, y] = [(left + right) / 2, (top + bottom) / 2];
      const [across, up] = this.axes.map((i) => shortened(names[i]));
      this.grid.replaceChildren();
      draw(this.grid, "text", { class: "xtitle", x, y: height - 8, text: across });
      draw(this.grid, "text", { class: "ytitle", transform: `translate(15,${y})rotate(-90)`, text: up });
      for (const value of ticks(this.view[0], width < 600 ? 4 : 8)) {
        const at = this.pixel(0, value);
        draw(this.grid, "path", { d: `M${at} ${top}V${bottom}` });
        draw(this.grid, "text", { x: at, y: bottom + 18, text: tickText(value) });
      }
      for (const value of ticks(this.view[1], 7)) {
        const at = this.pixel(1, value);
        draw(this.grid, "path", { d: `M${left} ${at}H${right}` });
        draw(this.grid, "text", { class: "end", x: left - 6, y: at + 4, text: tickText(value) });
      }
    }

    // ---------------------------------------------------------------- reading

    listen() {
      const at = (event) => {
        const { left, top } = this.plot.getBoundingClientRect();
        return [event.clientX - left, event.clientY - top];
      };
      const on = (name, action) => this.plot.addEventListener(name, action);
      const release = (event) => this.pressed.delete(event.pointerId);
      on("keydown", (event) => this.key(event));
      on("pointerdown", (event) => {
        this.pressed.set(event.pointerId, at(event));
        this.show(this.nearest(at(event)));
      });
      on("pointermove", (event) => {
        if (this.pressed.has(event.pointerId)) this.drag(event.pointerId, at(event));
        else this.show(this.nearest(at(event)));
      });
      ["pointerup", "pointercancel", "pointerleave"].forEach((name) => on(name, release));
      on("wheel", (event) => { // the wheel scrolls the page until the plot is clicked
        if (document.activeElement !== this.plot && !event.ctrlKey) return;
        event.preventDefault();
        this.zoom(1.002 ** event.deltaY, at(event));
      });
    }

    drag(pointer, to) {
      const from = this.pressed.get(pointer);
      this.pressed.set(pointer, to);
      const other = [...this.pressed].find(([id]) => id !== pointer)?.[1];
      if (!other) return this.pan([to[0] - from[0], to[1] - from[1]]);
      const distance = ([x, y]) => Math.hypot(x - other[0], y - other[1]) || 1;
      return this.zoom(distance(from) / distance(to), other); // two fingers
    }

    visible() { // rows and places of the visible points
      const inside = (x, [a, b]) => x >= Math.min(a, b) && x <= Math.max(a, b);
      return [...this.data.codes.keys()]
        .filter((row) => !this.hidden.has(this.data.codes[row]))
        .map((row) => [row, ...this.place(row)])
        .filter(([, x, y]) => inside(x, this.box[0]) && inside(y, this.box[1]));
    }

    nearest([left, top]) {
      const distances = this.visible().map(([row, x, y]) => [Math.hypot(x - left, y - top), row]);
      const [distance, row] = distances.reduce((a, b) => (b[0] < a[0] ? b : a), [REACH]);
      return distance < REACH ? row : undefined;
    }

    fields(row) {
      const { axes, codes, coordinates, details, groups, label } = this.data;
      const found = details.map(([name, column]) => [name, column[row]]);
      if (label !== undefined) found.unshift([label, groups[codes[row]].name]);
      found.push(...this.axes.map((i) => [axes[i], coordinates[i][row]]));
      return found.map(([name, value]) => `${name}: ${value === null ? "missing" : value}`);
    }

    show(row) {
      this.row = row;
      this.tip.replaceChildren();
      this.tip.style.display = this.ring.style.display = row === undefined ? "none" : "";
      if (row === undefined) return;
      const [x, y] = this.place(row);
      this.ring.setAttribute("transform", `translate(${x},${y})`);
      const texts = [this.data.ids[row], ...this.fields(row)];
      texts.forEach((text, i) => make(this.tip, i ? "div" : "b", { text }));
      this.line.textContent = texts.join(" · ");
      const { offsetWidth: width, offsetHeight: height } = this.tip;
      const left = x + 14 + width > this.plot.clientWidth ? x - 14 - width : x + 14;
      this.tip.style.left = `${Math.max(left, 0)}px`;
      this.tip.style.top = `${Math.max(Math.min(y, this.box[1][0] - height), 0)}px`;
    }

    key(event) {
      const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -1 / 0, End: 1 / 0 };
      const others = { "+": () => this.zoom(0.7), "-": () => this.zoom(1 / 0.7),
        0: () => this.reset(), Escape: () => this.show() };
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      others[event.key]?.();
      if (!(event.key in steps)) return;
      event.preventDefault();
      const rows = this.visible().sort((a, b) => a[1] - b[1]).map(([row]) => row);
      const now = rows.indexOf(this.row);
      const step = steps[event.key];
      const next = now < 0 && step === -1 ? rows.length - 1 : now + step;
      if (rows.length) this.show(rows[Math.min(Math.max(next, 0), rows.length - 1)]);
    }
  }

  for (const figure of document.querySelectorAll("figure.scatter")) new Scatter(figure);
})();
