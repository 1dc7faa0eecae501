// What all charts have in common: how they are mounted, re-themed, resized and printed.
const DASHES = { solid: "solid", dashed: [7, 4], dotted: [2, 3] };
const PAPER_WIDTH = 672; // 178 mm at 96 dpi: fits between the margins of both A4 and Letter
const mounted = [];
const onPaper = () => root.classList.contains("printing");

/** The data that stands beside a chart's element. */
const dataOf = (element) => JSON.parse(element.parentElement.querySelector(".chart-data").textContent);

/** Mount a chart; `build(width)` gives its option, and is asked again when the theme or the width changes. */
const mount = (element, build) => {
  const chart = echarts.init(element, null, { renderer: "svg" });
  const entry = { chart, element, width: 0, draw: null };
  entry.draw = (width) => {
    entry.width = width;
    const option = build(width);
    // What stands above the plot makes the chart higher, not the plot lower.
    element.style.height = "";
    const height = element.clientHeight + (option.above || 0);
    if (option.above) element.style.height = `${height}px`;
    delete option.above;
    chart.resize({ width, height, silent: true });
    chart.setOption(option, { notMerge: true });
  };
  entry.draw(element.clientWidth);
  mounted.push(entry);
  return chart;
};

const text = (role = "ink-3") => ({ color: color(role), fontSize: onPaper() ? 10 : 12 });

/** The option that every chart starts from. */
const base = () => ({
  animation: false,
  textStyle: { fontFamily: getComputedStyle(root).fontFamily, color: color("ink-2") },
  tooltip: {
    confine: true,
    backgroundColor: color("raised"),
    borderColor: color("line-strong"),
    borderWidth: 1,
    padding: [6, 10],
    transitionDuration: 0,
    extraCssText: "box-shadow: 0 2px 10px rgb(0 0 0 / 0.14); border-radius: 5px;",
  },
});

const LEGEND_ROW = 20;
const MOST_LEGEND_ROWS = 8;

/** How many rows a legend takes that breaks where it has no room: about, for it is not drawn yet. */
const legendRows = (names, left, width) => {
  let [rows, at] = [names.length > 1 ? 1 : 0, 0];
  for (const name of names) {
    const needed = 7 * name.length + 40;
    if (rows && at && at + needed > width - left) [rows, at] = [rows + 1, 0];
    at += needed;
  }
  return rows;
};

/** What the rows after the first of a legend take above a chart: paper has no pages to turn, so there it is all of them. */
const legendRoom = (names, left, width) => {
  const rows = legendRows(names, left, width);
  return rows > 1 && (onPaper() || rows <= MOST_LEGEND_ROWS) ? (rows - 1) * LEGEND_ROW : 0;
};

/** A legend in as many lines as its names need; on a screen one that would be a list of its own is paged. */
const legend = (names, left, width) => ({
  data: names,
  show: names.length > 1,
  type: !onPaper() && legendRows(names, left, width) > MOST_LEGEND_ROWS ? "scroll" : "plain",
  top: 0,
  left,
  right: 0,
  padding: [2, 0, 4, 0],
  itemWidth: 18,
  itemHeight: 8,
  itemGap: 16,
  textStyle: text("ink-2"),
  inactiveColor: color("line-strong"),
  pageIconColor: color("ink-3"),
  pageTextStyle: text(),
});

const valueAxis = (scale = {}) => ({
  type: "value",
  axisLine: { show: false },
  axisTick: { show: false },
  axisLabel: { ...text(), formatter: compact, hideOverlap: true },
  splitLine: { show: true, lineStyle: { color: color("grid"), width: 1 } },
  ...scale,
});

/**
 * A log axis between round values just outside the data (0.05 … 20, say, and not the next powers of ten), with labels at
 * the powers of ten, or at 1, 2, 5 where the axis spans few of them.
 */
const logScale = (values) => {
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return { type: "log" };
  const steps = [];
  const [low, high] = [Math.min(...positive), Math.max(...positive) * 1.04];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    steps.push(...[1, 2, 5].map((step) => Number(`${step}e${power}`)));
  }
  const min = steps.filter((step) => step <= low * 1.001).pop();
  const max = steps.find((step) => step >= high * 0.999 && step > min);
  const within = steps.filter((step) => step >= min && step <= max);
  const powers = within.filter((step) => Math.abs(Math.log10(step) - Math.round(Math.log10(step))) < 1e-9);
  const shown = powers.length > 2 ? powers : within;
  return { type: "log", min, max, axisLabel: { ...text(), formatter: compact, customValues: shown }, axisTick: { show: false, customValues: shown } };
};

/** How wide a label of a rule is, in pixels: about, for it is not drawn yet. */
const labelWidth = (label) => 6.3 * label.length + 10;
const RULE_ROW = 15;

/** In which row above the chart each rule's label stands, so that none covers another: rules are ascending. */
const ruleRows = (rules, place) => {
  const ends = [];
  return rules.map((rule) => {
    const [middle, half] = [place(rule.x), labelWidth(rule.label) / 2];
    const row = ends.findIndex((end) => end <= middle - half);
    const found = row < 0 ? ends.length : row;
    ends[found] = middle + half;
    return found;
  });
};

/** An element with a class and, as plain text, its content. */
const make = (name, content = "", tag = "div") => {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = content;
  return element;
};

/** The body of a tooltip: nodes with text in them, so that no name can be taken for HTML. */
const tip = (head, sub, rows) => {
  const box = make("tip");
  box.append(make("tip-head", head));
  if (sub) box.append(make("tip-sub", sub));
  for (const [name, value, paint] of rows) {
    const row = make("tip-row");
    const key = make("tip-key", "", "span");
    key.style.borderColor = paint;
    row.append(key, make("tip-name", name, "span"), make("tip-value", value, "span"));
    box.append(row);
  }
  return box;
};

const redraw = (entry, width) => {
  entry.draw(width);
  entry.chart.getZr().flush();
};

const setUpResizing = () => {
  const observer = new ResizeObserver((changes) => {
    if (onPaper()) return;
    for (const { target } of changes) {
      const entry = mounted.find((candidate) => candidate.element === target);
      if (entry && target.clientWidth && target.clientWidth !== entry.width) entry.draw(target.clientWidth);
    }
  });
  mounted.forEach((entry) => observer.observe(entry.element));
  themeListeners.push(() => mounted.forEach((entry) => redraw(entry, entry.width)));
};

/** The width that a chart gets on paper: its share of the page's. */
const paperWidth = (element) => {
  if (element.closest(".small-panels")) return Math.floor((PAPER_WIDTH - 2 * 14) / 3);
  return element.closest(".panels") ? Math.floor((PAPER_WIDTH - 17) / 2) : PAPER_WIDTH;
};

const setUpPrinting = () => {
  let before = null;
  const toPaper = () => {
    if (before) return;
    const closed = [...document.querySelectorAll("details:not([open])")];
    before = { theme: root.dataset.theme, closed };
    closed.forEach((element) => { element.open = true; });
    root.classList.add("printing");
    root.dataset.theme = "light";
    mounted.forEach((entry) => redraw(entry, paperWidth(entry.element)));
    drawPhases(PAPER_WIDTH);
  };
  const toScreen = () => {
    if (!before) return;
    before.closed.forEach((element) => { element.open = false; });
    root.classList.remove("printing");
    if (before.theme) root.dataset.theme = before.theme;
    else delete root.dataset.theme;
    before = null;
    mounted.forEach((entry) => redraw(entry, entry.element.clientWidth));
    drawPhases();
  };
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", toScreen);
  // Some browsers print (or emulate paper) without the two events.
  matchMedia("print").addEventListener("change", (change) => (change.matches ? toPaper() : toScreen()));
  document.getElementById("print-button").addEventListener("click", () => print());
};
