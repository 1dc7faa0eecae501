// The phases above the charts over time: mix, load, and each single phase, drawn on the charts' own axis.
const axis = JSON.parse(document.getElementById("time-axis").textContent);
const PLOT = { large: { left: 62, right: 14 }, medium: { left: 62, right: 14 }, small: { left: 46, right: 8 } };
const IDLE = new Set(["warm_up", "ramp_down", "pause"]);
const view = { start: axis.start_s, end: axis.end_s };

/** Consecutive bands that `same` joins, as one band each. */
const spans = (bands, same) => bands.reduce((joined, band) => {
  const last = joined[joined.length - 1];
  if (last && same(last, band)) last.end_s = band.end_s;
  else joined.push({ ...band });
  return joined;
}, []);

const groups = spans(axis.bands, (a, b) => a.group === b.group);
const loads = spans(axis.bands, (a, b) => a.group === b.group && a.load === b.load);
const phaseAt = (seconds) => axis.bands.find((band) => band.start_s <= seconds && seconds < band.end_s);
const kindWords = (kind) => kind.replace("_", "-");

/** Draw the rows for the part of the run that is shown; `total` is given when the page is laid out for paper. */
const drawPhases = (total) => {
  const strip = document.querySelector(".phases");
  if (!strip || view.end <= view.start) return;
  const { left, right } = PLOT.large;
  const width = (total || strip.clientWidth) - left - right;
  const x = (seconds) => left + ((seconds - view.start) / (view.end - view.start)) * width;
  const place = (band, name, label, needed) => {
    const [from, to] = [Math.max(x(band.start_s), left), Math.min(x(band.end_s), left + width)];
    if (to - from <= 0.2) return;
    const element = make(`phase ${name}`, to - from >= needed ? label : "");
    element.style.left = `${from}px`;
    element.style.width = `${Math.max(1, to - from - (name.startsWith("phase-one") ? 0.5 : 1))}px`;
    element.style.setProperty("--fill", `var(--${band.color || "muted"})`);
    element.title = `${name.startsWith("phase-one") ? `${band.name}, ${kindWords(band.kind)}` : label}: ${elapsed(band.start_s)} to ${elapsed(band.end_s)}`;
    element.addEventListener("click", () => zoomTo(band.start_s, band.end_s));
    strip.append(element);
  };
  // Where all loads are of one kind, the margin names it once and the spans hold only numbers.
  const sessions = loads.length > 1 && loads.every((band) => !band.load || / sessions?$/.test(band.load));
  const room = (label) => 6.2 * label.length + 6;
  const boldRoom = (label) => 8.4 * label.length + 11;
  strip.replaceChildren();
  if (sessions) strip.append(make("phase-unit", "sessions"));
  groups.forEach((band) => place(band, "phase-group", band.group, boldRoom(band.group)));
  for (const band of loads.filter((candidate) => candidate.load)) {
    // Where there is no room for "16 sessions", the number alone still says it.
    const short = band.load.replace(/ sessions?$/, "");
    const from = Math.max(x(band.start_s), left);
    const fits = !sessions && Math.min(x(band.end_s), left + width) - from >= room(band.load);
    place(band, "phase-load", fits ? band.load : short, room(short) - 3);
  }
  axis.bands.forEach((band) => place(band, IDLE.has(band.kind) ? "phase-one idle" : "phase-one", "", Infinity));
};

/** The list of parts to show; it does by keyboard what a click on a phase does. */
const setUpZoom = () => {
  const select = document.getElementById("zoom-phase");
  if (!select) return;
  const parts = [[axis.start_s, axis.end_s]];
  const add = (into, label, band) => {
    const option = make("", label, "option");
    option.value = String(parts.push([band.start_s, band.end_s]) - 1);
    into.append(option);
  };
  select.append(new Option("the whole run", "0"));
  for (const group of groups) {
    const within = make("", "", "optgroup");
    within.label = group.group || "phases";
    if (groups.length > 1) add(within, `all of ${group.group}`, group);
    const inside = axis.bands.filter((band) => band.start_s >= group.start_s && band.end_s <= group.end_s);
    inside.filter((band) => !IDLE.has(band.kind)).forEach((band) => add(within, `${band.name}, ${elapsed(band.start_s)}`, band));
    if (within.children.length) select.append(within);
  }
  select.addEventListener("change", () => zoomTo(...parts[Number(select.value)]));
  document.getElementById("zoom-reset").addEventListener("click", () => zoomTo(axis.start_s, axis.end_s));
  new ResizeObserver(() => {
    if (!onPaper()) drawPhases();
  }).observe(document.querySelector(".phases"));
};
