// Plots that answer: the values of all lines at the pointer, zoom by dragging, lines on and off,
// the data as files. Each figure brings its data as JSON; what is drawn here at the width of the
// page is what the page came with, by the same rules (src/axis.rs, src/number.rs, src/svg.rs).
//
// Pointer: drag to zoom, double click to reset. Keys on a plot: arrows move the cursor, + and -
// zoom, Escape resets. Plots of one group (all over time) share cursor and range.

class Plot extends Drawing {
  // The nearest point of any line to a value of x.
  snap(x) {
    const all = this.visible().map((line) => line.x[nearest(line.x, x)]);
    if (all.length === 0) return null;
    return all.reduce((best, found) => Math.abs(found - x) < Math.abs(best - x) ? found : best);
  }

  // Puts the cursor at x; with `told`, the values beside it.
  point(x, told) {
    const at = this.snap(x);
    if (at === null || at < this.x.min - 1e-9 || at > this.x.max + 1e-9) return this.leave();
    this.at = at;
    const px = this.px(at);
    this.cursor.setAttribute("x1", px);
    this.cursor.setAttribute("x2", px);
    this.cursor.setAttribute("visibility", "visible");
    this.tip.hidden = !told;
    if (!told) return;
    this.tip.replaceChildren();
    const line = (kind, content, colour) => {
      const row = document.createElement(kind === "b" ? "b" : "div");
      if (kind === "happened") row.className = kind;
      if (typeof colour === "number") {
        const swatch = document.createElement("i");
        swatch.style.background = `var(--c${colour})`;
        row.append(swatch);
      }
      row.append(content);
      this.tip.append(row);
    };
    line("b", valueText(this.data.x, at));
    for (const one of this.visible()) {
      const i = nearest(one.x, at);
      // A line without a point near here is left out.
      if (one.y[i] === null || Math.abs(this.px(one.x[i]) - px) > 12) continue;
      line("value", `${one.name} ${valueText(this.data.y, one.y[i])}`, one.colour);
    }
    for (const mark of this.data.marks) {
      if (at < mark.from || at > mark.to) continue;
      line("happened", `${mark.number}: ${mark.text}`);
    }
    const left = px * this.svg.clientWidth / this.width;
    const room = left + this.tip.offsetWidth + 14 < this.frame.clientWidth;
    this.tip.style.left = `${Math.max(0, room ? left + 12 : left - this.tip.offsetWidth - 12)}px`;
  }

  leave() {
    this.at = null;
    this.tip.hidden = true;
    this.cursor.setAttribute("visibility", "hidden");
  }

  // All plots that share range and cursor, this one among them.
  get kin() {
    const { group } = this.data;
    return group ? plots.filter((plot) => plot.data.group === group) : [this];
  }

  pointAll(x) {
    for (const plot of this.kin) plot.point(x, plot === this);
  }

  zoom(from, to) {
    const [low, high] = this.all;
    [from, to] = [Math.max(from, low), Math.min(to, high)];
    const range = to - from >= (high - low) * 0.999 ? null : [from, to];
    if (range && !(to - from > (high - low) / 1e4)) return;
    for (const plot of this.kin) {
      plot.range = range;
      plot.draw();
    }
  }

  // Closer by a factor, around the cursor or the middle.
  scale(factor) {
    const { min, max } = this.x;
    const middle = this.at === null ? (min + max) / 2 : this.at;
    const width = (max - min) * factor;
    const from = clamp(middle - width / 2, this.all[0], Math.max(this.all[0], this.all[1] - width));
    this.zoom(from, from + width);
  }

  key(event) {
    const xs = [...new Set(this.visible().flatMap((line) => line.x))].sort((a, b) => a - b);
    const { min, max } = this.x;
    const step = (by) => {
      const now = this.at === null ? (by > 0 ? min : max) : this.at;
      const index = clamp(nearest(xs, now) + (this.at === null ? 0 : by), 0, xs.length - 1);
      const x = xs[index];
      if (x < min || x > max) this.zoom(x - (max - min) / 2, x + (max - min) / 2);
      this.pointAll(x);
    };
    const far = event.shiftKey ? 10 : 1;
    const actions = {
      ArrowRight: () => step(far), ArrowLeft: () => step(-far),
      Home: () => this.pointAll(min), End: () => this.pointAll(max),
      "+": () => this.scale(0.5), "-": () => this.scale(2),
      Escape: () => { this.zoom(...this.all); this.kin.forEach((plot) => plot.leave()); },
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    if (xs.length > 0) actions[event.key]();
    event.preventDefault();
  }

  listen() {
    const { svg } = this;
    let start = null;
    const cancel = () => { start = null; this.select.setAttribute("visibility", "hidden"); };
    svg.addEventListener("pointerdown", (event) => {
      // A finger scrolls; it zooms by the buttons.
      if (event.pointerType !== "touch" && event.button === 0) start = event.clientX;
      this.pointAll(this.valueAt(event.clientX));
    });
    svg.addEventListener("pointermove", (event) => {
      this.pointAll(this.valueAt(event.clientX));
      if (start === null || Math.abs(event.clientX - start) < 6) return;
      svg.setPointerCapture(event.pointerId);
      const [a, b] = [start, event.clientX].map((x) => this.px(this.valueAt(x))).sort((p, q) => p - q);
      this.select.setAttribute("x", a);
      this.select.setAttribute("width", b - a);
      this.select.setAttribute("visibility", "visible");
    });
    svg.addEventListener("pointerup", (event) => {
      const from = start;
      cancel();
      if (from === null || Math.abs(event.clientX - from) < 6) return;
      const [a, b] = [from, event.clientX].map((x) => this.valueAt(x)).sort((p, q) => p - q);
      this.zoom(a, b);
    });
    svg.addEventListener("pointercancel", cancel);
    svg.addEventListener("pointerleave", () => this.kin.forEach((plot) => plot.leave()));
    svg.addEventListener("blur", () => this.kin.forEach((plot) => plot.leave()));
    svg.addEventListener("dblclick", () => this.zoom(...this.all));
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  // A click on the sample of a line hides it, and shows it again.
  legend() {
    this.figure.querySelectorAll(".legend li").forEach((item) => {
      const sample = item.querySelector("svg");
      const line = this.lines[Number(item.dataset.line)];
      // The ends of its interval have no sample of their own.
      const names = [`${line.name}, least`, `${line.name}, most`];
      const ends = this.lines.filter((end) => end.dash === "dotted" && names.includes(end.name));
      sample.removeAttribute("aria-hidden");
      const described = {
        role: "button", tabindex: 0, "aria-pressed": true, "aria-label": `show ${line.name}`,
      };
      Object.entries(described).forEach(([key, value]) => sample.setAttribute(key, value));
      const toggle = () => {
        line.shown = !line.shown;
        ends.forEach((end) => { end.shown = line.shown; });
        sample.setAttribute("aria-pressed", line.shown);
        item.classList.toggle("off", !line.shown);
        this.draw();
      };
      sample.addEventListener("click", toggle);
      sample.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle();
      });
    });
  }

  buttons() {
    const tools = document.createElement("div");
    tools.className = "tools";
    const button = (text, label, action) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.setAttribute("aria-label", `${label}: ${this.data.title}`);
      made.title = label;
      made.addEventListener("click", action);
      tools.append(made);
      return made;
    };
    button("+", "zoom in", () => this.scale(0.5));
    button("−", "zoom out", () => this.scale(2));
    this.reset = button("whole", "show all again", () => this.zoom(...this.all));
    button("CSV", "save the data as CSV", () => this.save("csv", "text/csv", this.csv()));
    button("JSON", "save the data as JSON", () => this.save("json", "application/json", this.json()));
    this.figure.append(tools);
  }

  // The points of a line as in report-data/: nines as quantiles.
  points(line) {
    const quantile = (x) => Math.round((1 - 10 ** -x) * 1e12) / 1e12;
    const x = this.data.x.format === "nines" ? quantile : (value) => value;
    return line.x.map((value, i) => [x(value), line.y[i]]);
  }

  csv() {
    const quoted = (text) => /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    const rows = this.lines.flatMap((line) =>
      this.points(line).map(([x, y]) => `${quoted(line.name)},${x},${y === null ? "" : y}\n`));
    return `series,${this.data.x.name},${this.data.y.name}\n${rows.join("")}`;
  }

  json() {
    const axis = ({ name, label, unit }) => ({ name, label, unit });
    const { id, title, x, y, marks } = this.data;
    const series = this.lines.map((line) => ({ name: line.name, points: this.points(line) }));
    const note = this.figure.querySelector(".note").textContent;
    return `${JSON.stringify({ id, title, note, x: axis(x), y: axis(y), series, events: marks }, null, 2)}\n`;
  }

  save(extension, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = `${this.data.id}.${extension}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}

// On A4, of a plot alone and of one beside another.
const PRINT_WIDTHS = [690, 334];

const plots = [];
for (const figure of document.querySelectorAll("figure.plot")) plots.push(new Plot(figure));
let pending = 0;
new ResizeObserver(() => {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(() => {
    for (const plot of plots) {
      if (Math.abs(plot.frame.clientWidth - plot.width) > 1) plot.draw();
    }
  });
}).observe(document.body);
// What is folded on the screen is on paper.
addEventListener("beforeprint", () => document.querySelectorAll("details.evidence")
  .forEach((folded) => { folded.open = true; }));
addEventListener("beforeprint", () => plots.forEach((plot) =>
  plot.draw(PRINT_WIDTHS[plot.figure.closest(".charts") ? 1 : 0])));
addEventListener("afterprint", () => plots.forEach((plot) => plot.draw()));
