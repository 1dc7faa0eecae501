// The theme: follows the system until the reader chooses. Colours live in the style sheet only; charts ask for them here.
const root = document.documentElement;
const themeListeners = [];

/** The colour of a role (c0, ink, grid …) in the present theme. */
const color = (role) => getComputedStyle(root).getPropertyValue(`--${role}`).trim();

const themeChanged = () => themeListeners.forEach((listener) => listener());

const setTheme = (theme) => {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  themeChanged();
};

const setUpTheme = () => {
  const button = document.getElementById("theme-button");
  const order = ["auto", "light", "dark"];
  const chosen = () => root.dataset.theme || "auto";
  const label = () => { button.textContent = `Theme: ${chosen()}`; };
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(chosen()) + 1) % order.length];
    setTheme(next);
    label();
    try {
      localStorage.setItem("nephoscope-theme", next);
    } catch {
      // Refused for a local file: the choice lasts as long as the page.
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
  label();
};
