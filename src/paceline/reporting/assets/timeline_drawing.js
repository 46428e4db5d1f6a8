// A timeline on its canvases: lanes, axis, names, the overview; in the colours that the style sheet gives right now.
// What is shown stands in attributes of the figure: data-from and data-to (seconds), data-frame (milliseconds of the last
// frame), data-boxes (rectangles in it).

const root = document.documentElement;
const GUTTER = 76, AXIS = 24, STEPS = 16, OVERVIEW = 34, UNDER = 4, MOST_OVERVIEW_RANKS = 10;
const PATTERN = { "/": "M0 7L7 0", "\\": "M0 0L7 7", x: "M0 7L7 0M0 0L7 7", "|": "M3.5 0V7", "-": "M0 3.5H7", "+": "M3.5 0V7M0 3.5H7", ".": "M2.5 2.5h2v2h-2Z" };

const digits = (value) => (value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2));
const duration = (ns) => {
  for (const [limit, factor, unit] of [[1e3, 1, "ns"], [1e6, 1e3, "µs"], [1e9, 1e6, "ms"], [120e9, 1e9, "s"]])
    if (ns < limit) return `${unit === "ns" ? ns.toFixed(0) : digits(ns / factor)} ${unit}`;
  return `${Math.floor(ns / 60e9)} min ${Math.floor((ns % 60e9) / 1e9)} s`;
};
// An instant, to a thousandth of what is in view.
const instant = (ns, viewNs) => {
  const decimals = Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(viewNs / 1e9))));
  return `${(ns / 1e9).toFixed(decimals)} s`;
};
const niceStep = (least) => {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least);
};
const share = (part) => (part < 0.005 ? "<1 %" : `${Math.round(100 * part)} %`);

class Drawing extends Lanes {
  constructor(figure, data) {
    super(data);
    this.figure = figure;
    this.canvas = figure.querySelector("[data-lanes]");
    this.overview = figure.querySelector("[data-overview]");
    this.range = figure.querySelector("output");
    [this.from, this.to] = this.loop();
    this.hover = null; // what is under the pointer
  }

  // Places the lanes, takes the colours that the style sheet gives right now, and draws.
  fit(paperWidth) {
    const width = paperWidth || this.canvas.parentElement.clientWidth;
    if (!width) return;
    this.scale = Math.min(devicePixelRatio || 1, 2);
    if (paperWidth) this.scale = 2;
    const ranks = [...new Set(this.strips.map((strip) => strip.rank))];
    const [tall, low, gap] = ranks.length <= 8 ? [26, 12, 10] : ranks.length <= 16 ? [18, 8, 7] : [9, 4, 4];
    let y = AXIS + (this.steps.length ? STEPS : 0);
    this.labels = [];
    for (const rank of ranks) {
      const [main, ...rows] = this.strips.filter((strip) => strip.rank === rank);
      Object.assign(main, { y, h: tall });
      this.labels.push({ rank, y, h: tall });
      y += tall;
      rows.forEach((row, n) => Object.assign(row, { y: y + 3 + (n * low) / rows.length, h: low / rows.length - (rows.length > 1 ? 1 : 0) }));
      y += (rows.length ? low + 3 : 0) + gap;
    }
    this.height = y;
    this.width = width;
    for (const [canvas, height] of [[this.canvas, y], [this.overview, OVERVIEW]]) {
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(width * this.scale);
      canvas.height = Math.round(height * this.scale);
    }
    const page = getComputedStyle(root);
    const colour = (name) => page.getPropertyValue(`--${name}`).trim();
    this.ink = { ink: colour("ink"), muted: colour("muted"), line: colour("line"), page: colour("page"), accent: colour("accent"), surface: colour("surface") };
    this.styles = this.data.kinds.map((kind) => ({
      fill: kind.color && colour(kind.color),
      on: kind.color && colour(`on-${kind.color}`),
      pattern: kind.pattern && this.pattern(PATTERN[kind.pattern], colour(`on-${kind.color}`)),
    }));
    this.small = this.drawnOverview();
    this.draw();
  }

  pattern(path, colour) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 7 * this.scale;
    const pen = tile.getContext("2d");
    pen.scale(this.scale, this.scale);
    pen.globalAlpha = 0.3;
    pen.strokeStyle = colour;
    pen.stroke(new Path2D(path));
    return pen.createPattern(tile, "repeat");
  }

  paint(pen, boxes) {
    let count = 0;
    boxes.forEach((box, k) => {
      if (!box.length) return;
      pen.fillStyle = this.styles[k].fill;
      for (let n = 0; n < box.length; n += 4) pen.fillRect(box[n], box[n + 1], box[n + 2], box[n + 3]);
      count += box.length / 4;
    });
    return count;
  }

  draw() {
    const began = performance.now();
    const pen = this.canvas.getContext("2d");
    const s = this.scale;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.axis(pen);
    const boxes = this.data.kinds.map(() => []);
    const wide = [];
    for (const strip of this.strips) {
      const area = this.area(strip);
      if (strip.row >= 0) {
        pen.fillStyle = this.ink.page;
        pen.fillRect(area.x, area.y, area.width, area.h);
      }
      this.lane(strip, this.from, this.to, area, boxes, wide);
    }
    const count = this.paint(pen, boxes);
    this.decorate(pen, wide);
    this.names(pen, s);
    this.marks(pen, s);
    this.strip();
    const view = this.ns(this.to - this.from);
    this.range.textContent = `${instant(this.ns(this.from), view)} to ${instant(this.ns(this.to), view)} (${duration(view)})`;
    Object.assign(this.figure.dataset, {
      from: this.ns(this.from) / 1e9, to: this.ns(this.to) / 1e9,
      boxes: count, frame: (performance.now() - began).toFixed(2),
    });
  }

  // The lane's place on the canvas, in whole pixels.
  area(strip) {
    const s = this.scale, x = Math.round(GUTTER * s), y = Math.round(strip.y * s);
    return { x, y, width: this.canvas.width - x, h: Math.max(1, Math.round((strip.y + strip.h) * s) - y) };
  }

  // What wide parts have room for: the pattern of their kind, and its name.
  decorate(pen, wide) {
    pen.font = `${11 * this.scale}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    for (let n = 0; n < wide.length; n += 5) {
      const [i, x, y, w, h] = wide.slice(n, n + 5);
      const style = this.styles[this.kind[i]];
      if (style.pattern) {
        pen.fillStyle = style.pattern;
        pen.fillRect(x, y, w, h);
      }
      if (h < 14 * this.scale) continue;
      const name = this.data.kinds[this.kind[i]].name;
      const room = pen.measureText(name).width + 6 * this.scale;
      if (room > w) continue;
      if (style.pattern) {
        pen.fillStyle = style.fill;
        pen.fillRect(x + (w - room) / 2, y + h / 2 - 7 * this.scale, room, 14 * this.scale);
      }
      pen.fillStyle = style.on;
      pen.fillText(name, x + w / 2, y + h / 2 + 0.5 * this.scale);
    }
  }

  axis(pen) {
    const s = this.scale, left = GUTTER * s, width = this.canvas.width - left;
    const view = this.ns(this.to - this.from);
    const step = niceStep((view * 96 * s) / width);
    const decimals = Math.min(9, Math.max(0, -Math.floor(Math.log10(step / 1e9) + 1e-9)));
    const x = (ns) => left + ((ns - this.ns(this.from)) / view) * width;
    pen.font = `${11.5 * s}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let t = Math.ceil(this.ns(this.from) / step) * step; t <= this.ns(this.to); t += step) {
      const at = Math.round(x(t));
      pen.fillStyle = this.ink.line;
      pen.fillRect(at, AXIS * s - 5 * s, s, this.canvas.height);
      pen.fillStyle = this.ink.muted;
      const text = `${(t / 1e9).toFixed(decimals)} s`;
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(Math.max(at, left + half), this.canvas.width - half), (AXIS / 2 - 1) * s);
    }
    if (!this.steps.length) return;
    this.stepMarks(pen, s, left, width);
  }

  // Where steps begin, as soon as they are some pixels apart; their numbers where these fit.
  stepMarks(pen, s, left, width) {
    const first = bisect(this.stepsAt, 0, this.stepsAt.length, this.from);
    const last = bisect(this.stepsAt, 0, this.stepsAt.length, this.to);
    const apart = width / Math.max(1, last - first);
    pen.fillStyle = this.ink.muted;
    pen.textAlign = "right";
    pen.fillText("step", left - 8 * s, (AXIS + STEPS / 2) * s);
    if (apart < 5 * s) return;
    pen.textAlign = "left";
    for (let n = first; n <= last; n++) {
      const at = Math.round(left + ((this.stepsAt[n] - this.from) / (this.to - this.from)) * width);
      if (at < left) continue;
      pen.globalAlpha = 0.55;
      pen.fillRect(at, AXIS * s, s, (STEPS - 3) * s);
      pen.globalAlpha = 1;
      if (apart > 34 * s) pen.fillText(String(this.steps[n]), at + 4 * s, (AXIS + STEPS / 2 - 1) * s);
    }
  }

  names(pen, s) {
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const tall = this.labels.length > 0 && this.labels[0].h >= 12;
    pen.font = `${(tall ? 12.5 : 9) * s}px system-ui, sans-serif`;
    const hosts = this.data.hosts;
    for (const { rank, y, h } of this.labels) {
      pen.fillStyle = this.ink.ink;
      pen.fillText(`rank ${rank}`, (GUTTER - 8) * s, (y + h / 2) * s);
      if (hosts.length && new Set(hosts).size > 1 && (rank === 0 || hosts[rank] !== hosts[rank - 1])) {
        pen.fillStyle = this.ink.muted;
        if (rank) pen.fillRect(0, Math.round((y - 4) * s), this.canvas.width, s);
        if (!tall) continue;
        pen.save();
        pen.font = `${10 * s}px system-ui, sans-serif`;
        const name = hosts[rank].split(".")[0];
        pen.fillText(name.length > 13 ? `${name.slice(0, 12)}…` : name, (GUTTER - 8) * s, (y + h + 7) * s);
        pen.restore();
      }
    }
  }

  // The part under the pointer, and the instant at which the last rank issued its message.
  marks(pen, s) {
    if (!this.hover) return;
    const { strip, from, to, gathered } = this.hover;
    const area = this.area(strip);
    const x = (t) => area.x + Math.min(Math.max((t - this.from) / (this.to - this.from), 0), 1) * area.width;
    pen.strokeStyle = this.ink.ink;
    pen.lineWidth = 1.5 * s;
    pen.strokeRect(x(from), area.y - s, Math.max(x(to) - x(from), 2 * s), area.h + 2 * s);
    if (gathered === undefined || gathered < this.from || gathered > this.to) return;
    pen.setLineDash([4 * s, 3 * s]);
    pen.beginPath();
    pen.moveTo(x(gathered), AXIS * s);
    pen.lineTo(x(gathered), this.canvas.height);
    pen.stroke();
    pen.setLineDash([]);
  }

  // The whole run in small, drawn once.
  drawnOverview() {
    const small = document.createElement("canvas");
    small.width = this.overview.width;
    small.height = this.overview.height - Math.round(UNDER * this.scale);
    const mains = this.strips.filter((strip) => strip.row < 0);
    const every = Math.ceil(mains.length / MOST_OVERVIEW_RANKS);
    const shown = mains.filter((_, n) => n % every === 0);
    const boxes = this.data.kinds.map(() => []);
    const x = Math.round(GUTTER * this.scale);
    shown.forEach((strip, n) => {
      const y = Math.round((n * small.height) / shown.length);
      const h = Math.max(1, Math.round(((n + 1) * small.height) / shown.length) - y - (shown.length > 1 ? 1 : 0));
      this.lane(strip, 0, this.data.window, { x, y, width: small.width - x, h }, boxes, null);
    });
    this.paint(small.getContext("2d"), boxes);
    return small;
  }

  // The overview, with what is not in view dimmed.
  strip() {
    const pen = this.overview.getContext("2d");
    const s = this.scale, left = Math.round(GUTTER * s), width = this.overview.width - left, h = this.small.height;
    pen.clearRect(0, 0, this.overview.width, this.overview.height);
    pen.drawImage(this.small, 0, 0);
    pen.font = `${11 * s}px system-ui, sans-serif`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = this.ink.muted;
    pen.fillText("whole run", left - 8 * s, h / 2);
    const a = left + (this.from / this.data.window) * width;
    const b = left + (this.to / this.data.window) * width;
    pen.globalAlpha = 0.72;
    pen.fillStyle = this.ink.surface;
    pen.fillRect(left, 0, a - left, h);
    pen.fillRect(b, 0, left + width - b, h);
    pen.globalAlpha = 1;
    pen.fillStyle = this.ink.accent;
    for (const [from, to] of this.data.in_full) {
      const x = left + (from / this.data.window) * width;
      pen.fillRect(x, h + s, Math.max(((to - from) / this.data.window) * width, 2 * s), UNDER * s);
    }
    pen.strokeStyle = this.ink.accent;
    pen.lineWidth = 2 * s;
    pen.strokeRect(a + s, s, Math.max(b - a - 2 * s, s), h - 2 * s);
  }
}
