// Charts over time: one time axis, one zoom, the idle phases shaded.
const timeCharts = [];
let zooming = false;

/** Show a part of the run in every chart over time. */
const zoomTo = (start, end) => {
  zooming = true;
  for (const { chart } of timeCharts) {
    chart.dispatchAction({ type: "dataZoom", dataZoomId: "zoom", startValue: start * 1000, endValue: end * 1000 });
  }
  zooming = false;
  zoomed(start, end);
};

const zoomed = (start, end) => {
  view.start = start;
  view.end = end;
  const whole = end - start >= (axis.end_s - axis.start_s) * 0.999;
  const reset = document.getElementById("zoom-reset");
  if (reset) reset.disabled = whole;
  if (whole && reset) document.getElementById("zoom-phase").value = "0";
  // A linear axis fits itself to what is shown; a log axis has fixed ends, so it is given new ones.
  for (const { chart, data } of timeCharts.filter((entry) => entry.data.log)) {
    chart.setOption({ yAxis: timeScale(data) });
  }
  // Labels that stood in one row may stand in each other's way now.
  for (const { chart, data } of timeCharts.filter((entry) => isLabelled(entry.data))) {
    const { grid, series } = timeOption(data, chart.getWidth());
    chart.setOption({ grid, series: series.slice(0, 1) });
  }
  drawPhases();
};

const shown = (data) => {
  const { start, end } = stretchOf(data);
  const inside = data.x.map((x) => x >= start && x <= end);
  const values = data.lines.flatMap((line) => line.y.filter((_, i) => inside[i]));
  return values.some((value) => value > 0) ? values : data.lines.flatMap((line) => line.y);
};

/** The reader moved one chart's slider: the others follow. */
const follow = (chart) => {
  if (zooming) return;
  const { startValue, endValue } = chart.getOption().dataZoom[0];
  zoomTo(startValue / 1000, endValue / 1000);
};

/** The stretch of the run that a chart shows: its own, or what the reader zoomed to. */
const stretchOf = (data) => (data.start_s === null ? view : { start: data.start_s, end: data.end_s });

/** The first chart names what happened; the others only mark when. */
const isLabelled = (data) => timeCharts.length > 0 && data.id === timeCharts[0].data.id;

const MOST_ROWS = 3;

/** The moments within a stretch, each with the row that its label stands in; where there is no room left it has none. */
const momentsIn = ({ start, end }, data, width) => {
  const inside = axis.moments.filter((moment) => moment.time_s >= start && moment.time_s <= end)
    .map((moment) => ({ x: moment.time_s, label: moment.text.slice(0, 60) }))
    .sort((a, b) => a.x - b.x);
  const { left, right } = PLOT[data.size];
  const place = (x) => left + ((x - start) / (end - start)) * (width - left - right);
  const rows = isLabelled(data) ? ruleRows(inside, place) : [];
  return inside.map((moment, index) => ({ ...moment, row: rows[index] < MOST_ROWS ? rows[index] : null }));
};

/** What all charts over time show of the run itself; it hangs on a series without data, so no legend can hide it. */
const backdrop = ({ start, end }, moments) => ({
  type: "line",
  name: "\u0000backdrop",
  data: [],
  silent: true,
  markArea: {
    silent: true,
    itemStyle: { color: color("band") },
    data: axis.bands.filter((band) => IDLE.has(band.kind) && band.end_s > start && band.start_s < end)
      .map((band) => [{ xAxis: Math.max(band.start_s, start) * 1000 }, { xAxis: Math.min(band.end_s, end) * 1000 }]),
  },
  markLine: {
    silent: true,
    symbol: "none",
    label: { show: false },
    data: [
      ...groups.slice(1).filter((group) => group.start_s > start && group.start_s < end).map((group) => ({
        xAxis: group.start_s * 1000,
        lineStyle: { color: color("band-edge"), width: 1, type: "solid" },
      })),
      ...moments.map(({ x, label, row }) => ({
        xAxis: x * 1000,
        lineStyle: { color: color("problem"), width: 1.2, type: [4, 3] },
        label: { show: row !== null, formatter: label, position: "end", distance: 3 + RULE_ROW * row, ...text("problem") },
      })),
    ],
  },
});

const timeSeries = (data, line, index) => {
  const paint = color(line.color);
  const points = data.x.map((x, i) => [x * 1000, line.y[i]]);
  const common = { name: line.name, data: points, itemStyle: { color: paint }, emphasis: { disabled: true } };
  if (data.style === "bars") {
    return { ...common, type: "bar", stack: "all", barMinWidth: 2, barCategoryGap: "0%", large: false };
  }
  const stacked = data.style === "stack";
  const alone = data.lines.length === 1;
  return {
    ...common,
    type: "line",
    stack: stacked ? "all" : undefined,
    symbol: data.x.length < 3 ? "circle" : "none",
    symbolSize: 5,
    // In a stack an outline would also follow the series that are zero.
    lineStyle: { color: paint, width: stacked && !alone ? 0 : data.size === "small" ? 1.3 : 1.5, type: DASHES[line.dash] },
    areaStyle: stacked ? { color: paint, opacity: alone ? 0.22 : 0.75 } : undefined,
    z: 3 + index,
  };
};

const timeTip = (data) => (items) => {
  const shown = items.filter((item) => item.seriesName !== "\u0000backdrop" && item.value[1] !== null);
  if (!shown.length) return "";
  const seconds = shown[0].value[0] / 1000;
  const phase = phaseAt(seconds);
  const unit = data.percent ? " %" : "";
  const rows = shown.map((item) => [item.seriesName, number(item.value[1]) + unit, item.color]);
  if (data.style === "stack" && rows.length > 1) {
    rows.push(["all", number(shown.reduce((sum, item) => sum + item.value[1], 0)), "transparent"]);
  }
  const what = phase ? `${phase.name}${IDLE.has(phase.kind) ? `, ${kindWords(phase.kind)}` : ""}` : "";
  return tip(elapsed(seconds, true), what, rows);
};

const timeScale = (data) => {
  const scale = valueAxis({ splitNumber: data.size === "small" ? 2 : 4, min: 0 });
  if (data.log) return { ...scale, ...logScale(shown(data)) };
  if (data.percent) return { ...scale, max: 100, interval: 50 };
  return scale;
};

/** The slider below the last chart; the others have it too, unseen, so that they follow its zoom. */
const slider = (show, { left, right }) => ({
  id: "zoom",
  type: "slider",
  show,
  left,
  right,
  bottom: 4,
  height: 24,
  startValue: view.start * 1000,
  endValue: view.end * 1000,
  filterMode: "filter",
  showDataShadow: false,
  brushSelect: false,
  labelFormatter: (value) => elapsed(value / 1000),
  textStyle: text(),
  borderColor: color("line"),
  fillerColor: color("band"),
  backgroundColor: "transparent",
  handleStyle: { color: color("raised"), borderColor: color("ink-3") },
  moveHandleStyle: { color: color("line-strong") },
  emphasis: { handleStyle: { color: color("raised"), borderColor: color("ink") }, moveHandleStyle: { color: color("ink-3") } },
});

const timeOption = (data, width) => {
  const slides = data.slider && !onPaper();
  const small = data.size === "small";
  const whole = data.start_s === null ? { start: axis.start_s, end: axis.end_s } : stretchOf(data);
  const moments = momentsIn(stretchOf(data), data, width);
  const labelRows = Math.max(0, ...moments.map(({ row }) => (row === null ? 0 : row + 1)));
  const { left, right } = PLOT[data.size];
  const names = data.lines.map((line) => line.name);
  const above = legendRoom(names, left, width) + RULE_ROW * Math.max(0, labelRows - 1);
  return {
    ...base(),
    above,
    useUTC: true,
    legend: { ...legend(names, left, width), ...(data.style === "lines" ? {} : { icon: "roundRect", itemWidth: 12, itemHeight: 9 }) },
    grid: { left, right, top: (names.length > 1 ? 28 : 10) + (labelRows ? 14 : 0) + above, bottom: (slides ? 44 : 0) + 24 },
    tooltip: { ...base().tooltip, trigger: "axis", formatter: timeTip(data), axisPointer: { lineStyle: { color: color("ink-3"), type: "solid" } } },
    xAxis: {
      type: "time",
      min: whole.start * 1000,
      max: whole.end * 1000,
      containShape: false,
      splitNumber: small ? 3 : 8,
      axisLine: { onZero: false, lineStyle: { color: color("axis") } },
      axisTick: { lineStyle: { color: color("axis") } },
      axisLabel: { ...text(), formatter: (value) => elapsed(value / 1000, stretchOf(data).end - stretchOf(data).start < 12), hideOverlap: true },
      splitLine: { show: false },
    },
    yAxis: timeScale(data),
    // Zooming with the wheel needs Ctrl, so that scrolling the page is never caught. A stretch of its own is not zoomed.
    dataZoom: data.start_s !== null ? [] : [slider(slides, PLOT[data.size]), { type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: false, preventDefaultMouseMove: false, filterMode: "filter" }],
    series: [backdrop(whole, moments), ...data.lines.map((line, index) => timeSeries(data, line, index))],
  };
};

const mountTime = (element) => {
  const data = dataOf(element);
  if (data.slider) element.classList.add("with-slider");
  if (data.start_s !== null) {
    mount(element, (width) => timeOption(data, width)).group = `from ${data.start_s}`;
    echarts.connect(`from ${data.start_s}`);
    return;
  }
  const entry = { data, chart: null };
  timeCharts.push(entry);
  const chart = mount(element, (width) => timeOption(data, width));
  chart.group = "time";
  entry.chart = chart;
  chart.on("datazoom", () => follow(chart));
};
