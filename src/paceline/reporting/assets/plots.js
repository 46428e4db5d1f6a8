// Draws the plots of the page and keeps them in step with its colours, its width, and what the reader has hidden.

const figures = JSON.parse(document.getElementById("figures").textContent);
const places = [...document.querySelectorAll("[data-figure]")];
const config = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
const page = getComputedStyle(root);
const hidden = new Map(places.map((place) => [place.dataset.figure, new Set()])); // labels of keys

// Every "var(--name)" replaced by the colour that the style sheet gives it right now.
const coloured = (part) => {
  if (typeof part === "string") {
    const name = /^var\((--[a-z-]+)\)$/.exec(part);
    return name ? page.getPropertyValue(name[1]).trim() : part;
  }
  if (Array.isArray(part)) return part.map(coloured);
  if (part && typeof part === "object")
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, coloured(value)]));
  return part;
};

const keyOf = (trace) => trace.meta ?? trace.name;
const shown = (name) =>
  coloured(figures[name].data).map((trace) => (hidden.get(name).has(keyOf(trace)) ? { ...trace, visible: false } : trace));

// Paper has no width to ask for before it is printed: these fit A4 and Letter, beside each other or alone.
const paperWidth = (place) => (place.closest(".single, .alone") ? 640 : 310);
const finger = matchMedia("(pointer: coarse)"); // it scrolls past a plot: a drag is not a zoom
const phone = matchMedia("(max-width: 560px)");
const isLow = (place) => phone.matches && place.closest(".main") !== null;

const drawOne = (place, paper) => {
  const name = place.dataset.figure;
  const layout = coloured(figures[name].layout);
  layout.uirevision = name; // a zoom outlives new colours
  if (paper) Object.assign(layout, { width: paperWidth(place), height: layout.height * 0.8, autosize: false });
  else if (isLow(place)) layout.height *= 0.7;
  if (!finger.matches && !paper) {
    layout.dragmode = "zoom";
    layout.xaxis.fixedrange = false;
    layout.yaxis.fixedrange = layout.yaxis.type === "category";
  }
  return Plotly.react(place, shown(name), layout, config);
};
const draw = (paper) => Promise.all(places.map((place) => drawOne(place, paper)));

for (const button of document.querySelectorAll("[data-toggle]")) {
  const { toggle: name, key } = button.dataset;
  const off = hidden.get(name);
  if (button.getAttribute("aria-pressed") === "false") off.add(key);
  button.addEventListener("click", () => {
    if (!off.delete(key)) off.add(key);
    button.setAttribute("aria-pressed", String(!off.has(key)));
    drawOne(places.find((place) => place.dataset.figure === name)).catch(complain);
  });
}

addEventListener("DOMContentLoaded", async () => {
  root.dataset.plots = places.length;
  await draw(false);
  root.dataset.drawn = document.querySelectorAll("[data-figure] .main-svg:first-child").length;
});
addEventListener("recolour", () => draw(false));
phone.addEventListener("change", () => draw(false));
addEventListener("beforeprint", () => draw(true));
addEventListener("afterprint", () => draw(false));
