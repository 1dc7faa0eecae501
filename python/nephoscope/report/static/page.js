// The page itself: charts are mounted, the bar shows where one is, commands can be copied.
const setUpCharts = () => {
  for (const element of document.querySelectorAll(".figure.time .chart")) mountTime(element);
  for (const element of document.querySelectorAll(".figure.xy .chart")) mountXY(element);
  for (const element of document.querySelectorAll(".figure.bars .chart")) mount(element, barsOption(dataOf(element)));
  for (const element of document.querySelectorAll(".figure.heat .chart")) mount(element, heatOption(dataOf(element)));
  echarts.connect("time");
};

const setUpBar = () => {
  const links = [...document.querySelectorAll(".bar nav a")];
  const sections = links.map((link) => document.querySelector(link.getAttribute("href")));
  const update = () => {
    const current = sections.reduce((last, section, i) => (section.getBoundingClientRect().top < 140 ? i : last), -1);
    links.forEach((link, i) => {
      if (i === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  };
  addEventListener("scroll", update, { passive: true });
  update();
};

const setUpCopying = () => {
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.previousElementSibling;
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        // No clipboard for a local file in this browser: select the command, so that one key copies it.
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
};

setUpTheme();
setUpCharts();
setUpZoom();
drawPhases();
setUpResizing();
setUpPrinting();
setUpBar();
setUpCopying();
