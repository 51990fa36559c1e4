// A plot as it is drawn at the width of the page.

class Drawing {
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
    this.box = { left: 0, right: this.width - 14, top: 34, bottom: this.height - 42 };
    const [from, to] = this.range || this.all;
    this.x = scales[this.data.x.scale](this.data.x, from, to);
    const found = this.range || this.lines.some((line) => !line.shown) ? this.extent(from, to) : null;
    // As it came, or by what is left to see.
    this.y = found ? scales[this.data.y.scale](this.data.y, ...found) : this.data.y;
    // Behind the longest label: as in src/svg.rs.
    const widths = this.y.ticks.map((tick) => [...tickText(this.data.y, tick, 0)]
      .reduce((sum, letter) => sum + (letter === "\u202f" ? 4 : 7.7), 9));
    this.box.left = Math.max(narrow ? 48 : 70, ...widths);
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
}
