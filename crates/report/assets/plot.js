// Plots that answer: the values of all lines at the pointer, zoom by dragging, lines on and off,
// the data as files. Each figure brings its data as JSON; what is drawn here at the width of the
// page is what the page came with, by the same rules (src/axis.rs, src/number.rs, src/svg.rs).
//
// Pointer: drag to zoom, double click to reset. Keys on a plot: arrows move the cursor, + and -
// zoom, Escape resets. Plots of one group (all over time) share cursor and range.
"use strict";
(() => {
  // On A4, of a plot alone and of one beside another.
  const PRINT_WIDTHS = [690, 334];
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

  // Numbers as text.
  const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const fixed = (value, decimals) => {
    const [whole, fraction] = Math.abs(value).toFixed(decimals).split(".");
    const sign = value < 0 && /[1-9]/.test(whole + (fraction || "")) ? "-" : "";
    return sign + grouped(whole) + (fraction ? `.${fraction}` : "");
  };
  const significant = (value) => {
    if (value === 0) return "0";
    if (!Number.isFinite(value)) return "–";
    const magnitude = Number(value.toExponential(2).split("e")[1]);
    return fixed(value, clamp(2 - magnitude, 0, 9));
  };
  const trimmed = (text) => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  const short = (value) => trimmed(significant(value));
  const latency = (us, number) => {
    if (us <= 0) return "0 ns";
    if (us < 0.9995) return `${number(us * 1e3)} ns`;
    if (us < 999.5) return `${number(us)} µs`;
    if (us < 999500) return `${number(us / 1e3)} ms`;
    return `${number(us / 1e6)} s`;
  };
  const bytes = (value) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; Math.abs(value) >= 1023.5 && unit < 4; unit++) value /= 1024;
    return `${short(value)} ${units[unit]}`;
  };
  const nines = (x) =>
    `${trimmed(((1 - 10 ** -x) * 100).toFixed(clamp(Math.ceil(x - 1), 0, 9)))} %`;
  const seconds = (value, step) => {
    if (step >= 3600) return `${short(value / 3600)} h`;
    if (step >= 60) return `${short(value / 60)} min`;
    return `${short(value)} s`;
  };
  // A value when hovering, and at a tick.
  const valueText = (axis, value) => ({
    latency: () => latency(value, significant), rate: () => `${significant(value)}/s`,
    seconds: () => `${trimmed(fixed(value, 3))} s`, nines: () => nines(value),
    share: () => `${significant(value * 100)} %`, bytes: () => bytes(value),
    number: () => `${short(value)}${axis.unit ? ` ${axis.unit}` : ""}`,
  })[axis.format]();
  const tickText = (axis, value, step) => ({
    latency: () => latency(value, short), rate: () => short(value),
    seconds: () => seconds(value, step), nines: () => nines(value),
    share: () => `${short(value * 100)} %`, bytes: () => bytes(value),
    number: () => short(value),
  })[axis.format]();

  // Axes.
  const rounded = (value, factors, fits) => {
    const decade = 10 ** Math.floor(Math.log10(value));
    return factors.find((factor) => fits(factor * decade)) * decade;
  };
  const roundUp = (value) =>
    rounded(value, [1, 2, 5, 10], (r) => r >= value * (1 - 1e-9));
  const roundDown = (value) =>
    rounded(value, [5, 2, 1, 0.5], (r) => r <= value * (1 + 1e-9));
  const TIME_STEPS = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  const span = (first, last, step) => {
    const ticks = [];
    for (let i = first; i <= last; i++) ticks.push(i * step);
    return ticks;
  };
  const scales = {
    linear: (axis, low, high) => {
      low = Math.min(low, 0);
      if (!(high > low)) high = low + 1;
      const least = (high - low) / 5;
      const unit = axis.format === "bytes"
        ? 1024 ** Math.floor(Math.log(Math.max(least, 1)) / Math.log(1024) + 1e-9) : 1;
      const step = roundUp(least / unit) * unit;
      let [first, last] = [Math.floor(low / step), Math.ceil(high / step - 1e-9)];
      if (axis.format !== "share" && high > step * (last - (last - first) * 0.04)) last++;
      return { min: first * step, max: last * step, ticks: span(first, last, step) };
    },
    exact: (axis, min, max) => {
      const least = (max - min) / 6;
      const round = axis.format === "seconds" && least > 10
        && TIME_STEPS.find((step) => step >= least * (1 - 1e-9));
      let step = round || roundUp(least);
      if (axis.format === "number") step = Math.max(step, 1);
      return { min, max, ticks: span(Math.ceil(min / step), Math.floor(max / step), step) };
    },
    log: (axis, low, high) => {
      const min = roundDown(low);
      let max = roundUp(high);
      if (max <= min) max = roundUp(min * 1.01);
      const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
      const factors = last - first <= 3 ? [1, 2, 5] : [1];
      const ticks = span(first, last, 1).flatMap((power) => factors.map((f) => f * 10 ** power));
      return { min, max, ticks: ticks.filter((t) => t >= min * 0.999 && t <= max * 1.001) };
    },
    nines: (axis, min, max) => {
      let ticks = [0, Math.log10(2), ...span(1, 12, 1)];
      // Between two nines there is 95 %, 98 % and so on.
      if (max - min < 2) ticks = span(0, 12, 1).flatMap((n) => [n, n + Math.log10(2), n + Math.log10(5)]);
      return { min, max, ticks: ticks.filter((t) => t >= min - 1e-9 && t <= max + 1e-9) };
    },
  };
  const place = (axis, range, value) => axis.scale === "log"
    ? Math.log(value / range.min) / Math.log(range.max / range.min)
    : (value - range.min) / (range.max - range.min);

  // The mark of a colour: as in src/svg.rs.
  const glyph = (colour, x, y, r) => {
    const d = 2 * r;
    const [cx, cy] = [x.toFixed(1), y.toFixed(1)];
    const at = (dx, dy) => `M${(x + dx).toFixed(1)} ${(y + dy).toFixed(1)}`;
    return [
      () => `${at(-r, 0)}a${r} ${r} 0 1 0 ${d} 0a${r} ${r} 0 1 0 -${d} 0`,
      () => `${at(-r, -r)}h${d}v${d}h-${d}z`,
      () => `M${cx} ${(y - r).toFixed(1)}l${r} ${d}h-${d}z`,
      () => `M${cx} ${(y - r).toFixed(1)}l${r} ${r}l-${r} ${r}l-${r} -${r}z`,
      () => `M${cx} ${(y + r).toFixed(1)}l${r} -${d}h-${d}z`,
      () => `M${(x - r).toFixed(1)} ${cy}h${d}h-${r}v-${r}v${d}h1v-${d}z`,
      () => `${at(-r, -r / 2)}h${d}v${r}h-${d}z`,
      () => `${at(-r, -r)}h${d}l-${d} ${d}h${d}z`,
    ][colour]();
  };

  const nearest = (xs, x) => {
    let [low, high] = [0, xs.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle; else high = middle;
    }
    return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
  };

  class Plot {
    constructor(figure) {
      this.figure = figure;
      this.frame = figure.querySelector(".frame");
      this.svg = figure.querySelector("svg.chart");
      this.tip = figure.querySelector(".tip");
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.lines = this.data.lines.map((line) => ({
        ...line, x: line.x || this.data.places || [], shown: true,
      }));
      this.stacked = this.data.style === "stack";
      this.range = null;
      this.at = null;
      this.buttons();
      this.legend();
      this.listen();
      this.draw();
    }

    get all() {
      return [this.data.x.min, this.data.x.max];
    }

    visible() {
      return this.lines.filter((line) => line.shown && line.x.length > 0);
    }

    // Least and largest value in a range of x, as far as the scale has a place for it.
    extent(from, to) {
      let [low, high] = [Infinity, -Infinity];
      const sums = new Map();
      for (const line of this.visible()) {
        line.x.forEach((x, i) => {
          let y = line.y[i];
          if (y === null || x < from || x > to || (this.data.y.scale === "log" && y <= 0)) return;
          if (this.stacked) sums.set(x, y += sums.get(x) || 0);
          [low, high] = [Math.min(low, y), Math.max(high, y)];
        });
      }
      return low <= high ? [low, high] : null;
    }

    // Sizes and ranges of what is drawn next.
    measure(width) {
      this.width = Math.max(width || this.frame.clientWidth, 240);
      const narrow = this.width < 420;
      this.height = narrow ? 248 : 308;
      this.box = { left: narrow ? 58 : 70, right: this.width - 14, top: 34, bottom: this.height - 42 };
      const [from, to] = this.range || this.all;
      this.x = scales[this.data.x.scale](this.data.x, from, to);
      const found = this.range || this.lines.some((line) => !line.shown) ? this.extent(from, to) : null;
      // As it came, or by what is left to see.
      this.y = found ? scales[this.data.y.scale](this.data.y, ...found) : this.data.y;
    }

    px(x) {
      return this.box.left + place(this.data.x, this.x, x) * (this.box.right - this.box.left);
    }

    py(y) {
      const share = place(this.data.y, this.y, y);
      return this.box.bottom - clamp(share, -1, 2) * (this.box.bottom - this.box.top);
    }

    // The value of x below a place on the screen.
    valueAt(clientX) {
      const box = this.svg.getBoundingClientRect();
      const x = (clientX - box.left) * this.width / box.width;
      const share = (x - this.box.left) / (this.box.right - this.box.left);
      return this.x.min + clamp(share, 0, 1) * (this.x.max - this.x.min);
    }

    draw(width) {
      this.measure(width);
      const { left, right, top, bottom } = this.box;
      const [w, h] = [right - left, bottom - top];
      const inside = this.events() + this.grid() + this.curves();
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
      this.svg.innerHTML =
        `<svg x="${left - 4}" y="${top - 4}" width="${w + 8}" height="${h + 8}" `
        + `viewBox="${left - 4} ${top - 4} ${w + 8} ${h + 8}">`
        + `${inside}</svg>${this.labels()}`
        + `<line class="cursor" y1="${top}" y2="${bottom}" visibility="hidden"/>`
        + `<rect class="select" y="${top}" height="${h}" width="0" visibility="hidden"/>`;
      this.cursor = this.svg.querySelector(".cursor");
      this.select = this.svg.querySelector(".select");
      if (this.reset) this.reset.hidden = !this.range;
      if (this.at !== null) this.point(this.at, !this.tip.hidden);
    }

    grid() {
      return this.y.ticks.map((tick) => {
        const y = this.py(tick).toFixed(1);
        return `<line class="grid" x1="${this.box.left}" x2="${this.box.right}" y1="${y}" y2="${y}"/>`;
      }).join("");
    }

    events() {
      return this.data.marks.map((mark) => {
        const [from, to] = [this.px(mark.from), this.px(mark.to)];
        const width = Math.max(to - from, 2).toFixed(1);
        const kind = mark.bad ? "event bad" : "event";
        return `<rect class="${kind}" x="${from.toFixed(1)}" width="${width}" y="${this.box.top}" `
          + `height="${this.box.bottom - this.box.top}"/>`;
      }).join("");
    }

    labels() {
      const { left, right, top, bottom } = this.box;
      const { x, y } = this.data;
      const parts = [];
      const text = (kind, px, py, anchor, content) => parts.push(
        `<text class="${kind}" x="${px.toFixed(1)}" y="${py.toFixed(1)}" `
        + `text-anchor="${anchor}">${escape(content)}</text>`);
      for (const tick of this.y.ticks) {
        text("tick y", left - 7, this.py(tick) + 4, "end", tickText(y, tick, 0));
      }
      const step = this.x.ticks.length > 1 ? this.x.ticks[1] - this.x.ticks[0] : 0;
      let last = -Infinity;
      for (const tick of this.x.ticks) {
        const [px, content] = [this.px(tick), tickText(x, tick, step)];
        parts.push(`<line class="mark" x1="${px}" x2="${px}" y1="${bottom}" y2="${bottom + 4}"/>`);
        if (px - last < 8 * content.length) continue;
        last = px;
        text("tick x", px, bottom + 18, px > right - 16 ? "end" : "middle", content);
      }
      last = -Infinity;
      for (const mark of this.data.marks) {
        const [from, to] = [Math.max(this.px(mark.from), left), Math.min(this.px(mark.to), right)];
        const middle = from + Math.max(to - from, 2) / 2;
        if (from > right || to < left || middle - last < 15) continue;
        last = middle;
        text(mark.bad ? "event bad" : "event", middle, top - 4, "middle", mark.number);
      }
      parts.push(`<line class="axis" x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}"/>`);
      text("label", right, this.height - 6, "end", x.label);
      text("label", 2, 11, "start", y.label);
      return parts.join("");
    }

    curves() {
      if (this.stacked) return this.areas();
      const bars = Math.max(this.lines[0]?.x.length || 1, 1);
      const bar = clamp((this.box.right - this.box.left) / bars * 0.7, 1, 40);
      return this.visible().map((line) => {
        let [path, marks, pen, last] = ["", "", false, -Infinity];
        // Few points are measurements, of which each has its mark.
        const every = this.data.style === "dots" || line.x.length <= 16 ? 0 : 80;
        line.x.forEach((value, i) => {
          const y = line.y[i];
          if (y === null || (this.data.y.scale === "log" && y <= 0)) { pen = false; return; }
          const [px, py] = [this.px(value), this.py(y)];
          if (this.data.style === "bars") {
            const foot = this.box.bottom;
            path += `M${(px - bar / 2).toFixed(1)} ${foot}V${py.toFixed(1)}h${bar.toFixed(1)}V${foot}Z`;
            return;
          }
          path += `${pen ? " " : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
          if (!this.attends(line) && (!pen || px - last >= every)) {
            marks += glyph(line.colour, px, py, 3.2);
            last = px;
          }
          pen = true;
        });
        if (this.data.style === "bars") return `<path class="area c${line.colour}" d="${path}"/>`;
        const curve = `<path class="line c${line.colour} ${line.dash}" d="${path}"/>`;
        return `${this.data.style === "dots" ? "" : curve}<path class="glyph c${line.colour}" d="${marks}"/>`;
      }).join("");
    }

    /// Whether it goes with a solid line of its colour: its interval, its law.
    attends(line) {
      const leads = (other) => other.dash === "" && other.colour === line.colour;
      return line.dash !== "" && this.lines.some(leads);
    }

    areas() {
      let below = null;
      return this.visible().map((line) => {
        const under = below || line.x.map(() => 0);
        const above = under.map((value, i) => value + (line.y[i] || 0));
        below = above;
        const edge = (values, i) => `${this.px(line.x[i]).toFixed(1)} ${this.py(values[i]).toFixed(1)}`;
        const there = line.x.map((_, i) => edge(above, i));
        const back = line.x.map((_, i) => edge(under, i)).reverse();
        return `<path class="area c${line.colour}" d="M${[...there, ...back].join(" ")}"/>`;
      }).join("");
    }

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
      this.figure.querySelectorAll(".legend li").forEach((item, i) => {
        const sample = item.querySelector("svg");
        const line = this.lines[i];
        sample.removeAttribute("aria-hidden");
        const described = {
          role: "button", tabindex: 0, "aria-pressed": true, "aria-label": `show ${line.name}`,
        };
        Object.entries(described).forEach(([key, value]) => sample.setAttribute(key, value));
        const toggle = () => {
          line.shown = !line.shown;
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
  addEventListener("beforeprint", () => plots.forEach((plot) =>
    plot.draw(PRINT_WIDTHS[plot.figure.closest(".charts") ? 1 : 0])));
  addEventListener("afterprint", () => plots.forEach((plot) => plot.draw()));
})();
