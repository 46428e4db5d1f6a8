// The plots under the keyboard: arrows go from figure to figure, + and − zoom, Home shows the whole.

const FINER = 0.7;

// The points of a plot that say something when they are pointed at, one list per trace.
const tellingPoints = (place) =>
  place.data.flatMap((trace, curve) =>
    trace.visible === false || !trace.hovertemplate
      ? []
      : [trace.x.flatMap((x, point) => (trace.y[point] === null || x === null ? [] : [{ curveNumber: curve, pointNumber: point }]))],
  ).filter((points) => points.length);

const at = new Map(); // by plot: which trace, which point

const step = (place, down, right) => {
  const traces = tellingPoints(place);
  if (!traces.length) return;
  const before = at.get(place);
  const trace = before ? (before[0] + down + traces.length) % traces.length : 0;
  const points = traces[trace];
  const point = before ? (Math.min(before[1], points.length - 1) + right + points.length) % points.length : 0;
  at.set(place, [trace, point]);
  Plotly.Fx.hover(place, [points[point]]);
};

// Ranges are in the units of the axis, on a logarithmic one in powers of ten.
const zoomBy = (place, factor) => {
  const [from, to] = place._fullLayout.xaxis.range;
  const middle = (from + to) / 2, half = ((to - from) / 2) * factor;
  Plotly.relayout(place, { "xaxis.range": [middle - half, middle + half] });
};

const whole = (place) => {
  const { xaxis } = figures[place.dataset.figure].layout;
  const change = xaxis.range ? { "xaxis.range": [...xaxis.range] } : { "xaxis.autorange": true };
  Plotly.relayout(place, place._fullLayout.yaxis.type === "category" ? change : { ...change, "yaxis.autorange": true });
};

for (const place of places) {
  const acts = {
    ArrowRight: () => step(place, 0, 1), ArrowLeft: () => step(place, 0, -1),
    ArrowDown: () => step(place, 1, 0), ArrowUp: () => step(place, -1, 0),
    "+": () => zoomBy(place, FINER), "=": () => zoomBy(place, FINER), "-": () => zoomBy(place, 1 / FINER),
    0: () => whole(place), Home: () => whole(place), Escape: () => whole(place),
  };
  place.addEventListener("keydown", (event) => {
    if (event.target !== place || !acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  });
  place.addEventListener("blur", () => {
    if (at.delete(place)) Plotly.Fx.unhover(place);
  });
}
