// Draws the plots of the page and keeps them in step with its colours and its width.
// What it did stands in attributes of <html>: data-plots (to draw), data-drawn, data-errors.
(() => {
  "use strict";
  const root = document.documentElement;
  const errors = [];
  const complain = (message) => {
    errors.push(String(message));
    root.dataset.errors = errors.join("\n");
  };
  addEventListener("error", (event) => complain(event.message));
  addEventListener("unhandledrejection", (event) => complain(event.reason));
  addEventListener("securitypolicyviolation", (event) =>
    complain(`${event.violatedDirective} forbids ${event.blockedURI}`),
  );

  const figures = JSON.parse(document.getElementById("figures").textContent);
  const config = { displayModeBar: false, responsive: true, scrollZoom: false };
  const page = getComputedStyle(root);

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

  const places = [...document.querySelectorAll("[data-figure]")];

  // Paper has no width to ask for before it is printed: these fit A4 and Letter, beside each other or alone.
  const paperWidth = (place) => (place.closest(".single") ? 640 : 310);

  const draw = (paper) => {
    const drawn = places.map((place) => {
      const figure = figures[place.dataset.figure];
      const layout = coloured(figure.layout);
      if (paper) Object.assign(layout, { width: paperWidth(place), height: layout.height * 0.8, autosize: false });
      return Plotly.react(place, coloured(figure.data), layout, config);
    });
    return Promise.all(drawn);
  };

  const save = async (button) => {
    const figure = figures[button.dataset.save];
    root.classList.add("paper"); // saved plots are for white pages, whatever the screen looks like
    const { data, layout } = coloured({ data: figure.data, layout: figure.layout });
    root.classList.remove("paper");
    Object.assign(layout, { paper_bgcolor: "white", showlegend: true, height: undefined });
    const filename = `${root.dataset.study}-${button.dataset.save}`;
    await Plotly.downloadImage({ data, layout, config }, { format: "svg", width: 720, height: 420, filename });
  };

  addEventListener("DOMContentLoaded", async () => {
    root.dataset.plots = places.length;
    await draw(false);
    root.dataset.drawn = document.querySelectorAll("[data-figure] .main-svg:first-child").length;
    for (const button of document.querySelectorAll("[data-save]"))
      button.addEventListener("click", () => save(button).catch(complain));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(false));
    addEventListener("beforeprint", () => {
      root.classList.add("paper");
      draw(true);
    });
    addEventListener("afterprint", () => {
      root.classList.remove("paper");
      draw(false);
    });
  });
})();
