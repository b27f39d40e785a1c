import type { DataType } from "apache-arrow";

type Arrow = typeof import("apache-arrow");

const TIME =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:(?<=:\d\d:\d\d)\.(\d+))?(Z|[-+]\d\d:?\d\d)?)?$/;
const NANO_DIGITS = 9;

/**
 * Returns a time of ISO 8601 in nanoseconds since 1970; undefined for a text that is none. A time without a zone is in
 * UTC, and digits beyond nanoseconds are dropped.
 */
export function nanosOfTime(text: string): bigint | undefined {
  const [, date, time = "00:00", fraction = "", zone = "Z"] = TIME.exec(text) ?? [];
  if (date === undefined) return undefined;
  const millis = Date.parse(`${date}T${time}${zone}`);
  // Engines take 30 February for the first of March.
  const day = new Date(Date.parse(date));
  if (Number.isNaN(millis) || !day.toISOString().startsWith(date)) return undefined;
  return BigInt(millis) * 1_000_000n + BigInt(fraction.slice(0, NANO_DIGITS).padEnd(NANO_DIGITS, "0"));
}

/** Returns the number of digits of the fraction of a second. */
export function fractionOf(text: string): number {
  return TIME.exec(text)?.[3]?.length ?? 0;
}

/** Returns the type for times with a number of digits of the fraction of a second: milliseconds, unless they lose digits. */
export function timeType(arrow: Arrow, fraction: number): DataType {
  if (fraction <= 3) return new arrow.TimestampMillisecond();
  return fraction <= 6 ? new arrow.TimestampMicrosecond() : new arrow.TimestampNanosecond();
}
