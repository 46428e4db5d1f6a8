// What is said of the part under the pointer.

const NOT_SEEN = 0xffffffff;

class Told extends Drawing {
  constructor(figure, data) {
    super(figure, data);
    this.tip = figure.querySelector(".tip");
  }

  hide() {
    const shown = this.hover;
    this.tip.hidden = true;
    this.hover = null;
    if (shown) this.later();
  }

  // Says what is under the pointer.
  tell(event) {
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top, x = event.clientX - box.left;
    const strip = this.strips.find((lane) => y >= lane.y - 1 && y < lane.y + lane.h + 1);
    if (!strip || x < GUTTER) return this.hide();
    const perPixel = (this.to - this.from) / (box.width - GUTTER);
    const t = this.from + (x - GUTTER) * perPixel;
    const said = this.under(strip, t, perPixel);
    if (!said) return this.hide();
    this.hover = { strip, ...said.mark };
    this.tip.replaceChildren(...said.lines.map((line, n) => {
      const row = document.createElement(n ? "div" : "strong");
      row.textContent = line;
      return row;
    }));
    this.tip.hidden = false;
    const room = this.figure.getBoundingClientRect();
    const left = Math.min(event.clientX - room.left + 14, room.width - this.tip.offsetWidth - 8);
    this.tip.style.left = `${Math.max(left, 8)}px`;
    this.tip.style.top = `${event.clientY - room.top + 18}px`;
    this.later();
  }

  under(strip, t, perPixel) {
    let i = bisect(this.start, strip.first, strip.last, t);
    const who = `rank ${strip.rank}${strip.row < 0 ? "" : ", messages"}`;
    if (this.ref[i] < -1) {
      while (i > strip.first && this.ref[i - 1] === this.ref[i]) i--;
      const [j, end] = this.bundleEnd(i, strip);
      const many = this.bundles[-2 - this.ref[i]];
      const below = duration(this.data.merged_below);
      const lines = [`${many} parts of ${who}`, `each shorter than ${below}, together ${duration(this.ns(end - this.start[i]))}`];
      return { lines: [...lines, ...this.sums(strip, i, j, this.start[i], end)], mark: { from: this.start[i], to: end } };
    }
    const begin = this.start[i], end = this.endOf(i, strip);
    if (end - begin < perPixel) {
      const a = Math.max(t - perPixel / 2, 0), b = Math.min(t + perPixel / 2, this.data.window);
      const first = bisect(this.start, strip.first, strip.last, a), last = bisect(this.start, strip.first, strip.last, b);
      if (last > first) {
        const lines = [`${last - first + 1} parts of ${who} in this pixel`, ...this.sums(strip, first, last, a, b)];
        return { lines, mark: { from: a, to: b } };
      }
    }
    if (this.kind[i] === this.none) return null;
    return { lines: this.about(i, strip, who, begin, end), mark: { from: begin, to: end, gathered: this.gatheredOf(i) } };
  }

  gatheredOf(i) {
    const gathered = this.ref[i] < 0 ? NOT_SEEN : this.gathered[this.ref[i]];
    return gathered === NOT_SEEN ? undefined : gathered;
  }

  // Shares of the kinds between two instants, the largest first.
  sums(strip, first, last, from, to) {
    const spent = new Map();
    for (let k = first; k <= last; k++) {
      const length = Math.min(this.endOf(k, strip), to) - Math.max(this.start[k], from);
      if (length > 0) spent.set(this.kind[k], (spent.get(this.kind[k]) || 0) + length);
    }
    return [...spent]
      .sort((a, b) => b[1] - a[1])
      .map(([k, length]) => `${k === this.none ? "no message" : this.data.kinds[k].name} ${share(length / (to - from))}`);
  }

  about(i, strip, who, begin, end) {
    const view = this.ns(this.to - this.from);
    const at = `${instant(this.ns(begin), view)}`;
    const step = this.step[i] >= 0 ? `, step ${this.step[i]}` : "";
    const m = this.ref[i];
    if (strip.row < 0) {
      const lines = [`${this.data.kinds[this.kind[i]].name}, ${duration(this.ns(end - begin))}`, `${who}${step}, at ${at}`];
      return m < 0 ? lines : [...lines, `of ${this.data.labels[this.label[m]]}`];
    }
    const issued = this.issued[m], gathered = this.gathered[m], completed = this.completed[m];
    // What lies between two ranks' instants is not known any better than their clocks agree.
    const across = (ticks) => (this.ns(ticks) < this.data.clock_error ? `less than ${duration(this.data.clock_error)}` : duration(this.ns(ticks)));
    const lines = [this.data.labels[this.label[m]], `${who}${step}, issued at ${instant(this.ns(issued), view)}`];
    if (completed === NOT_SEEN) lines.push("its end was not seen");
    else lines.push(`${duration(this.ns(completed - issued))} in all`);
    if (gathered === NOT_SEEN) lines.push("when the last rank came is not known");
    else if (completed === NOT_SEEN) lines.push(`waited ${across(gathered - issued)} for the last rank`);
    else if (gathered <= completed)
      lines.push(`waited ${across(gathered - issued)} for the last rank, moved for ${across(completed - gathered)}`);
    else lines.push(`over ${across(gathered - completed)} before the last rank came`);
    return lines;
  }
}
