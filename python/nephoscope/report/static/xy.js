// Charts over something other than time: sweeps, distributions, tails.
/** 1 / (1 - p) as a percentile, with as many nines as it has: 99.99 %. */
const percentileName = (x) => `${(100 - 100 / x).toFixed(Math.max(0, Math.ceil(Math.log10(x) - 2.001)))} %`;

/** An axis whose places have names is labelled at these alone. */
const withNames = (spec, axis) => {
  if (!spec.ticks.length) return axis;
  const customValues = spec.ticks.map(([x]) => x);
  const axisLabel = { ...axis.axisLabel, customValues, formatter: (x) => nameOf(spec, x), showMinLabel: true, showMaxLabel: true };
  return { ...axis, axisLabel, axisTick: { ...axis.axisTick, customValues } };
};

/** What a place of an axis is called; its number where it has no name. */
const nameOf = (spec, x) => {
  const named = spec.ticks.find(([at]) => Math.abs(at - x) <= 1e-9 * Math.abs(at));
  return named ? named[1] : number(x);
};

const xyScale = (spec, values, horizontal) => withNames(spec, unnamedScale(spec, values, horizontal));

const unnamedScale = (spec, values, horizontal) => {
  const named = horizontal
    ? { name: [spec.title, spec.unit].filter(Boolean).join(", "), nameLocation: "middle", nameGap: 28, nameTextStyle: text() }
    : {};
  const lined = horizontal
    ? {
        axisLine: { show: true, onZero: false, lineStyle: { color: color("axis") } },
        axisTick: { show: true, lineStyle: { color: color("axis") } },
        splitLine: { show: false },
      }
    : {};
  const scale = valueAxis({ ...named, ...lined, splitNumber: 5 });
  if (spec.scale === "log10") {
    const log = logScale(values);
    return { ...scale, ...log, axisTick: { ...log.axisTick, ...lined.axisTick } };
  }
  // Ends that are those of what was measured are no round numbers: they are not labelled.
  const axisLabel = { ...scale.axisLabel, showMinLabel: false, showMaxLabel: false };
  if (spec.scale === "log2") {
    return { ...scale, axisLabel, type: "log", logBase: 2, min: Math.min(...values) / 1.12, max: Math.max(...values) * 1.12 };
  }
  if (spec.scale === "percentile") {
    const ticks = [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].filter((x) => x <= Math.max(...values, 100));
    return {
      ...scale,
      type: "log",
      min: 2,
      max: Math.max(...values, 100),
      axisLabel: { ...scale.axisLabel, formatter: percentileName, customValues: ticks },
      axisTick: { ...lined.axisTick, customValues: ticks },
    };
  }
  if (spec.low === null) return { ...scale, min: 0, ...(spec.high === null ? {} : { max: spec.high }) };
  return { ...scale, axisLabel, min: spec.low, max: spec.high };
};

const SYMBOLS = {
  points: { symbol: "circle", symbolSize: 5 },
  crosses: { symbol: "path://M0,0L10,10M10,0L0,10", symbolSize: 8 },
  rug: { symbol: "rect", symbolSize: [1.4, 11], symbolOffset: [0, -6] },
};

const xySeries = (line) => {
  const paint = color(line.color);
  const filled = line.style === "area";
  const common = { name: line.name, data: line.data, itemStyle: { color: paint }, emphasis: { disabled: true } };
  if (SYMBOLS[line.style]) {
    const outline = line.style === "crosses" ? { color: "transparent", borderColor: paint, borderWidth: 2 } : { color: paint, opacity: 0.8 };
    return [{ ...common, type: "scatter", ...SYMBOLS[line.style], itemStyle: outline, z: 4 }];
  }
  return [{
    ...common,
    type: "line",
    step: filled ? "middle" : line.style === "steps" ? "end" : undefined,
    symbol: "none",
    lineStyle: { color: paint, width: 1.8, type: DASHES[line.dash] },
    areaStyle: filled ? { color: paint, opacity: 0.12 } : undefined,
    z: 3,
  }];
};

/** Intervals as upright strokes: a line that is broken after each; those of boxes are wide. */
const whiskers = (line) => strokesOf(line, line.whiskers, { width: 1.3 });
const boxes = (line) => strokesOf(line, line.boxes, { width: 22, opacity: 0.35, cap: "butt" });

const strokesOf = (line, intervals, style) => ({
  type: "line",
  name: line.name,
  silent: true,
  showSymbol: false,
  connectNulls: false,
  data: intervals.flatMap(([x, low, high]) => [[x, low], [x, high], [x, null]]),
  lineStyle: { color: color(line.color), ...style },
  itemStyle: { color: color(line.color) },
  tooltip: { show: false },
  z: 2,
});

const marks = (list) => ({
  type: "scatter",
  name: "\u0000marks",
  silent: true,
  z: 6,
  data: list.map((mark) => ({
    value: [mark.x, mark.y],
    symbolSize: 15,
    itemStyle: { color: "transparent", borderColor: color(mark.color), borderWidth: 2 },
    label: {
      show: true,
      formatter: mark.label,
      position: list.some((other) => other.x === mark.x && other.y > mark.y) ? "bottom" : "top",
      distance: 6,
      ...text("ink"),
      fontWeight: 600,
      textBorderColor: color("paper"),
      textBorderWidth: 3,
    },
  })),
});

/** Rules and shaded stretches; like the backdrop of charts over time they hang on a series without data. */
const ground = (data, rows, place) => ({
  type: "line",
  name: "\u0000ground",
  data: [],
  silent: true,
  markArea: {
    silent: true,
    data: data.spans.map((span) => [
      {
        xAxis: span.start,
        itemStyle: { color: color(span.color) },
        label: {
          show: place(span.end) - place(span.start) >= labelWidth(span.label),
          formatter: span.label,
          position: "insideTop",
          ...text("ink-3"),
        },
      },
      { xAxis: span.end },
    ]),
  },
  markLine: {
    silent: true,
    symbol: "none",
    data: data.rules.map((rule, index) => ({
      xAxis: rule.x,
      lineStyle: { color: color(rule.color), width: 1.3, type: DASHES[rule.dash] },
      label: { show: true, formatter: rule.label, position: "end", distance: 3 + RULE_ROW * rows[index], ...text(rule.color) },
    })),
  },
});

const xyTip = (data) => (item) => {
  const [x, y] = item.value;
  const name = item.seriesName;
  const where = data.x.scale === "percentile" ? percentileName(x) : `${data.x.title} ${nameOf(data.x, x)} ${data.x.unit}`;
  return tip(name, where, [[data.y.title, `${number(y)} ${data.y.unit}`, item.color]]);
};

const xyOption = (data, width) => {
  const all = data.lines.flatMap((line) => line.data);
  const names = [...new Set(data.lines.filter((line) => line.legend).map((line) => line.name))];
  const values = all.map(([x]) => x).filter((x) => x > 0);
  const [left, right] = [56, 18];
  // Only linear axes have rules and stretches, and those say where they begin and end.
  const place = (x) => left + ((x - data.x.low) / (data.x.high - data.x.low)) * (width - left - right);
  const rows = ruleRows(data.rules, place);
  const extra = legendRoom(names, 48, width);
  const above = (names.length > 1 ? 34 : 16) + extra + (rows.length ? RULE_ROW * (Math.max(...rows) + 1) : 0);
  const strokes = data.lines.filter((line) => line.whiskers.length).map(whiskers);
  strokes.push(...data.lines.filter((line) => line.boxes.length).map(boxes));
  return {
    ...base(),
    above: extra,
    legend: legend(names, 48, width),
    grid: { left, right, top: above, bottom: 46 },
    tooltip: { ...base().tooltip, trigger: "item", formatter: xyTip(data) },
    xAxis: xyScale(data.x, values, true),
    yAxis: xyScale(data.y, all.map(([, y]) => y).filter((y) => y !== null), false),
    series: [ground(data, rows, place), ...data.lines.flatMap(xySeries), ...strokes, ...(data.marks.length ? [marks(data.marks)] : [])],
  };
};

const mountXY = (element) => {
  const data = dataOf(element);
  mount(element, (width) => xyOption(data, width));
};
