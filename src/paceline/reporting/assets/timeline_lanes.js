// The parts of a timeline, and the boxes that lanes of them are drawn as; see records/run_picture.py for what the columns mean.
//
// A frame looks at the parts that are in view alone, found by bisection. Parts narrower than a pixel are summed by kind, and the
// pixel is divided among them from the bottom up: so a frame draws no more than pixels × lanes × kinds, however many parts there are.

const TYPES = { kind: Uint8Array, step: Int32Array, ref: Int32Array, steps: Int32Array }; // the others are Uint32Array

// The columns by name: they travel one after the other, deflated, as differences from each number to the next.
const unpacked = async ({ packed, counts }) => {
  const raw = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  const columns = {};
  let at = 0;
  for (const [name, count] of Object.entries(counts)) {
    const Type = TYPES[name] ?? Uint32Array;
    const column = new Type(bytes.slice(at, at + count * Type.BYTES_PER_ELEMENT));
    for (let i = 1; i < count; i++) column[i] += column[i - 1];
    columns[name] = column;
    at += column.byteLength;
  }
  return columns;
};

// The last of starts[first..last) that is not after t.
const bisect = (starts, first, last, t) => {
  while (last - first > 1) {
    const middle = (first + last) >>> 1;
    if (starts[middle] <= t) first = middle;
    else last = middle;
  }
  return first;
};

class Lanes {
  constructor(data) {
    this.data = data;
    const { columns } = data;
    Object.assign(this, columns, { stepsAt: columns.steps_at });
    this.none = data.kinds.findIndex((kind) => kind.name === "none");
    this.shares = new Float64Array(data.kinds.length);
    this.strips = data.lanes.map(([rank, row, first, count]) => ({ rank, row, first, last: first + count }));
  }

  ns(ticks) {
    return ticks * this.data.tick;
  }

  endOf(i, strip) {
    return i + 1 < strip.last ? this.start[i + 1] : this.data.window;
  }

  // The stretch of the steps, with a margin: start-up is in the overview.
  loop() {
    const [from, to] = this.data.loop;
    const margin = (to - from) * 0.02;
    return [Math.max(from - margin, 0), Math.min(to + margin, this.data.window)];
  }

  // Adds the boxes of one lane between two instants: x, y, w, h by kind, in pixels of the canvas.
  lane(strip, from, to, area, boxes, wide) {
    const { start, kind, ref, shares } = this;
    const perTick = area.width / (to - from);
    let pixel = -1, parts = 0;
    const flush = () => {
      if (pixel < 0) return;
      let bottom = area.y + area.h;
      if (parts <= 2) {
        // The edge between two wide parts: it belongs to the wider.
        let most = 0;
        for (let k = 1; k < shares.length; k++) if (shares[k] > shares[most]) most = k;
        if (most !== this.none) boxes[most].push(area.x + pixel, area.y, 1, area.h);
      } else
        for (let k = 0; k < shares.length; k++) {
          const h = Math.min(shares[k], 1) * area.h;
          if (k === this.none) continue;
          bottom -= h;
          if (h > 0.3) boxes[k].push(area.x + pixel, bottom, 1, h);
        }
      shares.fill(0);
      parts = 0;
      pixel = -1;
    };
    const put = (x, amount, k) => {
      if (x !== pixel) {
        flush();
        pixel = x;
      }
      shares[k] += amount;
      parts++;
    };
    let i = bisect(start, strip.first, strip.last, from);
    while (i > strip.first && ref[i] < -1 && ref[i - 1] === ref[i]) i--;
    for (; i < strip.last && start[i] < to; i++) {
      if (ref[i] < -1) {
        const [j, end] = this.bundleEnd(i, strip);
        if ((end - start[i]) * perTick >= 2) {
          flush();
          this.band(i, j, end, from, perTick, area, boxes, strip);
        } else {
          // Its kinds have no order: each has its share of every pixel that the bundle touches.
          const left = Math.max((start[i] - from) * perTick, 0), right = Math.min((end - from) * perTick, area.width);
          for (let x = Math.floor(left); x < right; x++) {
            const covered = (Math.min(x + 1, right) - Math.max(x, left)) / (end - start[i]);
            for (let k = i; k <= j; k++) put(x, covered * (this.endOf(k, strip) - start[k]), kind[k]);
          }
        }
        i = j;
        continue;
      }
      const left = Math.max((start[i] - from) * perTick, 0);
      const right = Math.min((this.endOf(i, strip) - from) * perTick, area.width);
      const a = Math.floor(left), b = Math.floor(right);
      if (a === b) {
        put(a, right - left, kind[i]);
        continue;
      }
      put(a, a + 1 - left, kind[i]);
      const w = b - a - 1;
      if (w > 0) {
        flush();
        if (kind[i] !== this.none) {
          boxes[kind[i]].push(area.x + a + 1, area.y, w > 5 * this.scale ? w - this.scale : w, area.h);
          if (wide && w > 14 * this.scale) wide.push(i, area.x + a + 1, area.y, w - this.scale, area.h);
        }
      }
      if (right > b) put(b, right - b, kind[i]);
    }
    flush();
  }

  // The last part of the bundle that begins with part i, and where it ends.
  bundleEnd(i, strip) {
    let j = i;
    while (j + 1 < strip.last && this.ref[j + 1] === this.ref[i]) j++;
    return [j, this.endOf(j, strip)];
  }

  // A bundle that is wider than a pixel: a band for each kind, as high as its share of the time.
  band(i, j, end, from, perTick, area, boxes, strip) {
    const left = Math.max(Math.round((this.start[i] - from) * perTick), 0);
    const right = Math.min(Math.round((end - from) * perTick), area.width);
    let bottom = area.y + area.h;
    for (let k = i; k <= j; k++) {
      const h = ((this.endOf(k, strip) - this.start[k]) / (end - this.start[i])) * area.h;
      bottom -= h;
      if (this.kind[k] !== this.none) boxes[this.kind[k]].push(area.x + left, bottom, right - left, h);
    }
  }
}
