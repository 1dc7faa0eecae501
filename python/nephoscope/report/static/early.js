// Before the first paint: say that scripts run, and take the theme that was chosen (here or in the address: ?theme=dark).
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  let theme = new URLSearchParams(location.search).get("theme");
  try {
    theme = theme || localStorage.getItem("nephoscope-theme");
  } catch {
    // A browser may refuse storage to a local file; then the choice lasts as long as the page.
  }
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
})();
