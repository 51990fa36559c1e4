// Values as text, by the rules of src/number.rs.

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

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
