// Numbers as the tables write them: significant digits, thousands separated, a dash for what is absent.
const significant = (digits) => {
  const format = new Intl.NumberFormat("en-US", { maximumSignificantDigits: digits });
  return (value) => (value === null || value === undefined || !Number.isFinite(value) ? "–" : format.format(value));
};
const number = significant(4);
const brief = significant(3);

const compactFormat = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 4 });

/** An axis label: in full up to five digits, then 250K, 1.2M. */
const compact = (value) => (Math.abs(value) < 100000 ? number(value) : compactFormat.format(value));

/** A moment of the run, in seconds, as a stopwatch shows it. */
const elapsed = (seconds, tenths = false) => {
  const whole = tenths ? Math.floor(seconds) : Math.round(seconds);
  const rest = tenths && seconds % 1 > 0.049 ? `.${Math.floor((seconds % 1) * 10 + 0.5)}` : "";
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n) => String(n).padStart(2, "0");
  return `${h ? `${h}:${two(m)}` : m}:${two(s)}${rest}`;
};
