// Axes: where a value stands, which values have a tick; by the rules of src/axis.rs. The marks of
// the colours, as in src/svg.rs.

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
