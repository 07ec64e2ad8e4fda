// Times: the objects hold ISO-8601 UTC with microseconds, people read "in 12 s" and "3 min ago".

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Microseconds since the epoch, or null where the text is no time. */
export function microseconds(text) {
  if (typeof text !== "string") return null;
  const parts = /^(.*?\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})$/.exec(text);
  const seconds = parts ? Date.parse(parts[1] + parts[3]) : NaN;
  if (Number.isNaN(seconds)) return null;
  return seconds * 1000 + Number((parts[2] ?? "").padEnd(6, "0").slice(0, 6));
}

export function isoTime(micros) {
  const whole = Math.floor(micros / 1e6);
  const fraction = String(micros - whole * 1e6).padStart(6, "0");
  return `${new Date(whole * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** The minute of an index key: minutes since the epoch, ten digits. */
export function indexMinute(micros) {
  return String(Math.floor(micros / 60e6)).padStart(10, "0");
}

/** A span of seconds in a few characters: 850 ms, 12 s, 4 min 05 s, 3 h 10 min, 2 d 4 h. */
export function span(seconds) {
  const size = Math.abs(seconds);
  if (size < 1) return `${Math.round(size * 1000)} ms`;
  if (size < 10) return `${size.toFixed(1)} s`;
  if (size < MINUTE) return `${Math.floor(size)} s`;
  if (size < HOUR) return `${Math.floor(size / MINUTE)} min ${String(Math.floor(size % MINUTE)).padStart(2, "0")} s`;
  if (size < DAY) return `${Math.floor(size / HOUR)} h ${Math.floor((size % HOUR) / MINUTE)} min`;
  return `${Math.floor(size / DAY)} d ${Math.floor((size % DAY) / HOUR)} h`;
}

/** A moment seen from now: "in 12 s", "just now", "3 min ago". */
export function relative(seconds) {
  if (seconds > 0) return `in ${coarse(Math.ceil(seconds))}`;
  return seconds > -2 ? "just now" : `${coarse(Math.floor(-seconds))} ago`;
}

/** A moment in the reader's own zone, for titles. */
export function localTime(micros) {
  const moment = new Date(micros / 1000);
  return `${moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" })} (${isoTime(micros)})`;
}

function coarse(seconds) {
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
}
