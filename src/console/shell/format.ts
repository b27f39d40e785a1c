const NUMBERS = new Intl.NumberFormat("en");
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

/** Writes a count with separators of thousands. */
export function formatCount(count: number | bigint): string {
  return NUMBERS.format(count);
}

/** Writes a number of bytes in the largest fitting unit. */
export function formatBytes(bytes: number | bigint): string {
  let amount = Number(bytes);
  let unit = 0;
  while (amount >= 1000 && unit < UNITS.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 100 ? 0 : 1;
  return `${amount.toFixed(digits)} ${UNITS[unit]}`;
}

/** Writes a time as `2026-05-04 13:02:01 UTC`, with milliseconds where there are some. */
export function formatTime(millis: number): string {
  const date = new Date(millis);
  if (Number.isNaN(date.getTime())) return String(millis);
  return date
    .toISOString()
    .replace("T", " ")
    .replace(/(?:\.000)?Z$/, " UTC");
}

/** Writes a duration in seconds with a fitting unit. */
export function formatSeconds(seconds: number): string {
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  return seconds >= 0.001 ? `${(seconds * 1e3).toFixed(1)} ms` : `${(seconds * 1e6).toFixed(0)} µs`;
}

const STEPS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const AGES = new Intl.RelativeTimeFormat("en", { numeric: "always" });

/** Writes how long ago a time was. */
export function formatAge(millis: number, now: number): string {
  const seconds = Math.round((millis - now) / 1000);
  const step = STEPS.find(([, length]) => Math.abs(seconds) >= length);
  return step === undefined ? "just now" : AGES.format(Math.round(seconds / step[1]), step[0]);
}
