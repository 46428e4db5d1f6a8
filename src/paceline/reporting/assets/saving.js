// Saves plots as SVG, and the data of plots, tables and timelines as CSV: made here, sent nowhere.

const savePlot = async (name) => {
  root.classList.add("paper"); // saved plots are for white pages, whatever the screen looks like
  const data = shown(name), layout = coloured(figures[name].layout);
  root.classList.remove("paper");
  Object.assign(layout, { paper_bgcolor: "white", showlegend: true, height: undefined });
  const filename = `${root.dataset.study}-${name}`;
  await Plotly.downloadImage({ data, layout, config }, { format: "svg", width: 720, height: 420, filename });
};

// What spreadsheets would read as a formula is marked as text: names come from files.
const cell = (value) => {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csv = (rows) => rows.map((row) => row.map(cell).join(",") + "\r\n").join("");

// Names as they were before they were made safe for Plotly.
const plainly = (text) =>
  String(text).replaceAll("<br>", " ").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

// Of a plot that brings no numbers of its own: every trace, point by point.
const traceRows = ({ data, layout }) => {
  const title = (axis, name) => plainly(layout[axis]?.title?.text ?? name);
  const rows = [["series", title("xaxis", "x"), title("yaxis", "y")]];
  for (const trace of data)
    (trace.x ?? []).forEach((x, n) => {
      const row = [trace.name ?? "", x, trace.y[n]];
      if (x !== null) rows.push(row.map((part) => (typeof part === "string" ? plainly(part) : part)));
    });
  return rows;
};
const plotRows = (name) => {
  const { numbers } = figures[name];
  return numbers ? [numbers.columns, ...numbers.rows] : traceRows(figures[name]);
};

const DASH = "–";
const tidy = (text) => text.replace(/\s+/g, " ").trim();
// A figure and what stands beside it; of shades, what they say when they are pointed at.
const parts = (place) => {
  const beside = place.querySelector("small");
  const whole = tidy(place.textContent) || place.title;
  if (!beside) return [whole, ""];
  return [tidy([...place.childNodes].filter((node) => node !== beside).map((node) => node.textContent).join("")), tidy(beside.textContent)];
};
const bare = (text) => {
  if (text === DASH) return "";
  const number = text.replace(/^−/, "-").replace(/^\+/, "");
  return /^-?\d{1,3}(,\d{3})*(\.\d+)?$/.test(number) ? number.replaceAll(",", "") : text;
};
const every = (texts, form) => texts.some(Boolean) && texts.every((text) => !text || form.test(text));

// A column of a table as one of the file, or two or three: intervals have two ends, and signs go into headings.
const columnRows = (heading, cells) => {
  let figuresOf = cells.map(([figure]) => (figure === DASH ? "" : figure));
  const besides = cells.map(([, beside]) => beside);
  let unit = "";
  if (every(figuresOf, /^[−\-+<]?[\d.,]+ %$/)) {
    unit = " (%)";
    figuresOf = figuresOf.map((text) => text.replace(/ %$/, ""));
  }
  const columns = [[heading + unit, ...figuresOf.map(bare)]];
  if (every(besides, /^\[.+, .+\]$/)) {
    const ends = besides.map((text) => /^\[(.+), (.+)\]$/.exec(text) ?? ["", "", ""]);
    columns.push([`${heading}${unit}, low`, ...ends.map((end) => bare(end[1]))]);
    columns.push([`${heading}${unit}, high`, ...ends.map((end) => bare(end[2]))]);
  } else if (every(besides, /^± /)) columns.push([`${heading}, ±`, ...besides.map((text) => bare(text.slice(2)))]);
  else if (every(besides, /^[a-z]+$/)) columns.push([`${heading}, note`, ...besides]);
  else if (besides.some(Boolean)) columns.push(...columnRows(`${heading}, share`, besides.map((text) => [text, ""])));
  return columns;
};
// Of cells with a published figure above ours: that one, and ours with what stands beside it, or why there is none.
const columnsOf = (heading, places) => {
  const printed = places.map((place) => place.querySelector(".printed"));
  if (!printed.some(Boolean)) return columnRows(heading, places.map(parts));
  const published = printed.map((place) => parts(place));
  const ours = places.map((place) => ["b", "small"].map((name) => tidy(place.querySelector(name)?.textContent ?? "")));
  const here = ours.map(([figure, beside]) => (figure ? [figure, beside] : [beside, ""]));
  const notes = places.map((place) => tidy(place.querySelector("sup")?.textContent ?? ""));
  const noted = notes.some(Boolean) ? [[`${heading}, here, note`, ...notes]] : [];
  return [...columnRows(`${heading}, published`, published), ...columnRows(`${heading}, here`, here), ...noted];
};
const tableRows = (table) => {
  const lines = [...table.tBodies[0].rows].map((row) => [...row.cells]);
  const head = [...[...table.tHead.rows].at(-1).cells].map((place) => tidy(place.textContent));
  const square = table.closest(".matrix") !== null; // its columns are its rows, and not all have room for a name
  const headings = head.map((text, n) => (square && n ? tidy(lines[n - 1][0].textContent) : text));
  const columns = headings.flatMap((heading, n) => columnsOf(heading, lines.map((line) => line[n])));
  return columns[0].map((_, n) => columns.map((column) => column[n]));
};

const saveText = (text, filename) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
};

for (const button of document.querySelectorAll("[data-csv]"))
  button.addEventListener("click", () => {
    const { csv: name, of } = button.dataset;
    const around = button.closest("figure");
    const rows = of ? plotRows(of) : around.timelineRows ? around.timelineRows() : tableRows(around.querySelector("table"));
    saveText(csv(rows), `${root.dataset.study}-${name}.csv`);
  });
for (const button of document.querySelectorAll("[data-save]"))
  button.addEventListener("click", () => savePlot(button.dataset.save).catch(complain));
