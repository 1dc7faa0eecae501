// Bars by name, and heat maps: both have a row for each name, where names are many.
const ROW = 16;
const NAME_WIDTH = 190;

/** The room for the names of rows. */
const nameRoom = (names) => Math.min(NAME_WIDTH, 14 + 6.6 * Math.max(0, ...names.map((name) => name.length)));

/** An axis of names; long ones are cut, and those without room left out. */
const namesAxis = (names, title, horizontal) => ({
  type: "category",
  data: names,
  name: title,
  nameLocation: "middle",
  nameGap: horizontal ? 28 : undefined,
  nameTextStyle: text(),
  inverse: !horizontal,
  axisLine: { lineStyle: { color: color("axis") } },
  axisTick: { show: false },
  axisLabel: { ...text(), fontSize: 11, interval: horizontal ? "auto" : 0, width: NAME_WIDTH - 14, overflow: "truncate" },
  splitLine: { show: false },
});

const barsOption = (data) => (width) => {
  const names = data.series.map((series) => series.name);
  const left = data.flat ? nameRoom(data.names) : 56;
  const extra = legendRoom(names, 4, width);
  const top = (names.length > 1 ? 30 : 8) + extra;
  const values = { ...valueAxis({ min: 0, splitNumber: 4 }), position: data.flat ? "top" : undefined };
  const rows = data.names.length * ROW * (data.stacked ? 1 : Math.max(1, 0.7 * names.length));
  return {
    ...base(),
    above: data.flat ? rows + top + 24 : extra,
    legend: { ...legend(names, 4, width), icon: "roundRect", itemWidth: 12, itemHeight: 9 },
    grid: { left, right: 18, top: data.flat ? top + 18 : top, bottom: data.flat ? 6 : 46 },
    tooltip: {
      ...base().tooltip,
      trigger: "axis",
      axisPointer: { type: "shadow", shadowStyle: { color: color("band"), opacity: 0.5 } },
      formatter: (items) => tip(items[0].name, "", items.map((item) => [item.seriesName, `${number(item.value)} ${data.unit}`, item.color])),
    },
    xAxis: data.flat ? values : namesAxis(data.names, data.names_title, true),
    yAxis: data.flat ? namesAxis(data.names, "", false) : values,
    series: data.series.map((series) => ({
      type: "bar",
      name: series.name,
      stack: data.stacked ? "all" : undefined,
      data: series.values,
      barGap: "0%",
      barCategoryGap: "25%",
      barMaxWidth: 34,
      itemStyle: { color: color(series.color) },
      emphasis: { disabled: true },
    })),
  };
};

const RAMPS = { log: ["h0", "h1", "h2", "h3", "h4"], difference: ["d0", "d1", "d2", "d3", "d4"] };

/** A ramp of the present theme: the colour at a place, 0 to 1, is mixed of the two about it. */
const rampOf = (scale) => {
  const stops = RAMPS[scale].map((role) => [1, 3, 5].map((at) => parseInt(color(role).slice(at, at + 2), 16)));
  return (place) => {
    const at = Math.min(Math.max(place, 0), 1) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    return `rgb(${stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * (at - low))).join(", ")})`;
  };
};

/** Where a value stands on the scale of a heat map, 0 to 1. */
const placeOn = ({ scale, low, high }, value) => {
  if (scale === "difference") return high > 0 ? 0.5 + value / (2 * high) : 0.5;
  return high > low ? Math.log(value / low) / Math.log(high / low) : 1;
};

/** A heat map: squares of a scatter chart, for the vendored build of the library has no heat maps. */
const heatOption = (data) => (width) => {
  const [left, right, top, bottom] = [nameRoom(data.rows), 6, 4, 46];
  const ramp = rampOf(data.scale);
  const size = [Math.max(1, (width - left - right) / data.columns.length - 1), ROW - 1];
  const sign = (value) => (data.scale === "difference" && value > 0 ? "+" : "");
  return {
    ...base(),
    above: data.rows.length * ROW + top + bottom,
    grid: { left, right, top, bottom },
    tooltip: {
      ...base().tooltip,
      trigger: "item",
      formatter: ({ value: [column, row, value], color: paint }) =>
        tip(data.rows[row], `${data.columns_title}: ${data.columns[column]}`, [[data.title, `${sign(value)}${number(value)} ${data.unit}`, paint]]),
    },
    xAxis: namesAxis(data.columns, data.columns_title, true),
    yAxis: namesAxis(data.rows, "", false),
    series: [{
      type: "scatter",
      symbol: "rect",
      symbolSize: size,
      data: data.cells.map((cell) => ({ value: cell, itemStyle: { color: ramp(placeOn(data, cell[2])), opacity: 1 } })),
      emphasis: { disabled: true },
    }],
  };
};
