// Shows the values of all lines at the pointer. Each plot brings the places of its points, in units
// of the drawing, and their texts.
"use strict";
for (const plot of document.querySelectorAll(".plot")) {
  const svg = plot.querySelector("svg");
  const tip = plot.querySelector(".tip");
  const cursor = svg.querySelector(".cursor");
  const lines = JSON.parse(plot.querySelector("script").textContent);
  const nearest = (xs, x) => {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle; else high = middle;
    }
    return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
  };
  const hide = () => {
    tip.hidden = true;
    cursor.setAttribute("visibility", "hidden");
  };
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const drawn = lines.filter((line) => line.x.length > 0);
    if (drawn.length === 0) return hide();
    const points = drawn.map((line) => [line, nearest(line.x, x)]);
    const [first, index] = points.reduce((best, point) =>
      Math.abs(point[0].x[point[1]] - x) < Math.abs(best[0].x[best[1]] - x) ? point : best);
    const at = first.x[index];
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    tip.replaceChildren();
    const title = document.createElement("b");
    title.textContent = first.at[index];
    tip.append(title);
    for (const [line, i] of points) {
      // A line without a point near here is left out.
      if (Math.abs(line.x[i] - at) > 12) continue;
      const row = document.createElement("div");
      const swatch = document.createElement("i");
      swatch.style.background = `var(--c${line.colour})`;
      row.append(swatch, `${line.name} ${line.value[i]}`);
      tip.append(row);
    }
    tip.hidden = false;
    const left = at / scale;
    const room = left + tip.offsetWidth + 14 < box.width;
    tip.style.left = `${Math.max(0, room ? left + 12 : left - tip.offsetWidth - 12)}px`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);
}
