// What the whole page has in common: errors, colours, folds and print.
// What happened stands in attributes of <html>: data-plots (to draw), data-drawn, data-errors, data-theme (once chosen).

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

// Tells plots and timelines to take the colours of the style sheet anew.
const recolour = () => dispatchEvent(new Event("recolour"));

const REMEMBERED = "paceline-theme";
const darkScreen = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : darkScreen.matches);
// Some browsers keep nothing for pages from a file: then the choice holds until the page is closed.
const remembered = (theme) => {
  try {
    if (theme) localStorage.setItem(REMEMBERED, theme);
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
};
const themeButton = document.querySelector("[data-theme-button]");
const sayTheme = () => (themeButton.textContent = isDark() ? "Light colours" : "Dark colours");
const before = remembered();
if (before === "dark" || before === "light") root.dataset.theme = before;
themeButton.hidden = false;
sayTheme();
themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  remembered(root.dataset.theme);
  sayTheme();
  recolour();
});
darkScreen.addEventListener("change", () => {
  sayTheme();
  recolour();
});

// On paper every fold is open, but for definitions: they have a section of their own.
let folded = [];
addEventListener("beforeprint", () => {
  root.classList.add("paper");
  folded = [...document.querySelectorAll("details.fold:not([open])")];
  for (const fold of folded) fold.open = true;
});
addEventListener("afterprint", () => {
  root.classList.remove("paper");
  for (const fold of folded) fold.open = false;
});

addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const fold = event.target.closest("details.about[open]");
  if (!fold) return;
  fold.open = false;
  fold.querySelector("summary").focus();
});

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const written = navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = await written.then(() => "Copied", () => "Select it");
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}
