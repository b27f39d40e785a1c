const AGE = /^(\d+) ?(s|m|h|d)$/;
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses an age such as `90m`, `12h` or `7d`; returns milliseconds, or undefined for any other text. */
export function parseAge(text: string): number | undefined {
  const [, digits, unit = ""] = AGE.exec(text) ?? [];
  const age = Number(digits) * (UNITS[unit] ?? Number.NaN);
  return Number.isSafeInteger(age) ? age : undefined;
}
