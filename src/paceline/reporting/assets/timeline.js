// Lets a reader go into the timelines of the page: wheel, pointers, keys and buttons.

class Timeline extends Told {
  constructor(figure, data) {
    super(figure, data);
    figure.timelineRows = () => this.rows(); // what saving.js asks for
    this.listen();
    this.fit();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerleave", () => this.hide());
    this.fingers();
    this.grip();
    const acts = { in: () => this.zoom(0.5), out: () => this.zoom(2), whole: () => this.reset(), loop: () => this.show(...this.loop()), full: () => this.nextInFull() };
    for (const button of this.figure.querySelectorAll("[data-act]"))
      button.addEventListener("click", () => acts[button.dataset.act]());
  }

  // Every part that is shown, as rows of a table; of bundles one for each kind, one after the other.
  rows() {
    const seconds = (ticks) => Number((this.ns(ticks) / 1e9).toPrecision(9));
    const rows = [["rank", "lane", "start (s)", "end (s)", "kind", "step", "message"]];
    for (const strip of this.strips)
      for (let i = strip.first; i < strip.last; i++) {
        if (this.kind[i] === this.none) continue;
        const lane = strip.row < 0 ? "main thread" : "messages";
        const message = this.ref[i] >= 0 ? this.data.labels[this.label[this.ref[i]]] : "";
        const step = this.step[i] >= 0 ? this.step[i] : null;
        const { name } = this.data.kinds[this.kind[i]];
        rows.push([strip.rank, lane, seconds(this.start[i]), seconds(this.endOf(i, strip)), name, step, message]);
      }
    return rows;
  }

  show(from, to) {
    const whole = this.data.window;
    const width = Math.min(Math.max(to - from, Math.min(whole, 40)), whole);
    const begin = Math.min(Math.max(from + (to - from - width) / 2, 0), whole - width);
    if (begin === this.from && begin + width === this.to) return;
    this.from = begin;
    this.to = begin + width;
    this.hide();
    this.later();
  }

  zoom(factor, around = 0.5) {
    const width = this.to - this.from;
    const at = this.from + around * width;
    this.show(at - around * width * factor, at + (1 - around) * width * factor);
  }

  pan(by) {
    const width = this.to - this.from;
    const from = Math.min(Math.max(this.from + by * width, 0), this.data.window - width);
    this.show(from, from + width);
  }

  nextInFull() {
    const middle = (this.from + this.to) / 2;
    const all = this.data.in_full;
    const next = all.find(([from]) => from > middle) || all[0];
    if (next) this.show(...next);
  }

  reset() {
    this.show(0, this.data.window);
  }

  later() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  // Where in the view an event is, from 0 to 1.
  place(event, canvas = this.canvas) {
    const box = canvas.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left - GUTTER) / (box.width - GUTTER), 0), 1);
  }

  // A wheel scrolls the page past, unless Ctrl is held or the timeline was clicked.
  wheel(event) {
    const mine = event.ctrlKey || event.metaKey || document.activeElement === this.canvas;
    if (!mine) return;
    const pixels = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((((event.deltaX || event.deltaY) * pixels) / this.width) * 0.8);
      return;
    }
    const outside = this.from === 0 && this.to === this.data.window && event.deltaY > 0;
    if (outside && !event.ctrlKey) return;
    event.preventDefault();
    this.zoom(Math.exp(Math.min(Math.max(event.deltaY * pixels, -240), 240) * 0.003), this.place(event));
  }

  key(event) {
    const far = event.shiftKey ? 0.8 : 0.15;
    const acts = {
      ArrowLeft: () => this.pan(-far), ArrowRight: () => this.pan(far),
      ArrowUp: () => this.zoom(0.7), ArrowDown: () => this.zoom(1 / 0.7),
      "+": () => this.zoom(0.7), "=": () => this.zoom(0.7), "-": () => this.zoom(1 / 0.7),
      0: () => this.reset(), Home: () => this.reset(), Escape: () => this.reset(),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  // One pointer moves the view or asks what is under it; two spread and pinch it.
  fingers() {
    const { canvas } = this;
    const down = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, this.place(event));
      canvas.classList.add("held");
    });
    const up = (event) => {
      down.delete(event.pointerId);
      if (!down.size) canvas.classList.remove("held");
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointermove", (event) => {
      const before = down.get(event.pointerId);
      if (before === undefined) return this.tell(event);
      const now = this.place(event);
      if (down.size === 1) this.pan(before - now);
      else {
        const [[, other]] = [...down].filter(([id]) => id !== event.pointerId);
        const [was, is] = [Math.abs(before - other), Math.abs(now - other)];
        if (was > 0.01 && is > 0.01) this.zoom(was / is, (now + other) / 2);
      }
      down.set(event.pointerId, now);
    });
  }

  // In the overview: what is in view can be moved, and another stretch be marked.
  grip() {
    const { overview } = this;
    let from = null, moves = false;
    const at = (event) => this.place(event, overview) * this.data.window;
    overview.addEventListener("pointerdown", (event) => {
      overview.setPointerCapture(event.pointerId);
      from = at(event);
      const whole = this.from === 0 && this.to === this.data.window;
      moves = !whole && from >= this.from && from <= this.to;
    });
    overview.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const now = at(event);
      if (moves) {
        this.pan((now - from) / (this.to - this.from));
        from = now;
      } else if (Math.abs(now - from) > this.data.window / 500) this.show(Math.min(from, now), Math.max(from, now));
    });
    const up = () => (from = null);
    overview.addEventListener("pointerup", up);
    overview.addEventListener("pointercancel", up);
    overview.addEventListener("dblclick", () => this.reset());
  }
}

const timelines = JSON.parse(document.getElementById("timelines").textContent);
const made = new Map();
const runs = [...document.querySelectorAll("[data-run]")];
const choice = document.querySelector("[data-choose]");

// Only the run that is looked at is unpacked and drawn.
const choose = async (number) => {
  runs.forEach((run, n) => (run.hidden = n !== number));
  const figure = runs[number] && runs[number].querySelector("[data-timeline]");
  if (!figure) return;
  if (made.has(figure)) return made.get(figure).fit();
  const data = timelines[figure.dataset.timeline];
  const columns = await unpacked(data);
  if (!made.has(figure)) made.set(figure, new Timeline(figure, { ...data, columns }));
  root.dataset.timelines = made.size;
};
const refit = (paper) => made.forEach((timeline) => timeline.fit(paper));
if (choice) choice.addEventListener("change", () => choose(choice.selectedIndex));
choose(0);
new ResizeObserver(() => {
  for (const timeline of made.values())
    if (timeline.canvas.parentElement.clientWidth !== timeline.width) timeline.fit();
}).observe(document.querySelector("main"));
addEventListener("recolour", () => refit());
addEventListener("beforeprint", () => refit(640));
addEventListener("afterprint", () => refit());
