import type { DataType } from "apache-arrow";

type Arrow = typeof import("apache-arrow");

/** A time of ISO 8601. */
export interface TimeText {
  /** Nanoseconds since 1970; without a zone as if it were in UTC. */
  readonly nanos: bigint;
  readonly hasZone: boolean;
  /** Whether it is a day alone. */
  readonly isDate: boolean;
  /** Digits of the fraction of a second. */
  readonly fraction: number;
}

const TIME =
  /^(\d{4}|[-+]\d{4,15})-(\d\d)-(\d\d)(?:[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9})0*)?)?(?:(Z)|([-+])([01]\d|2[0-3]):?([0-5]\d))?)?$/;
const TIME_OF_DAY = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9})0*)?)?$/;
/** Why a column is refused that has both. */
export const MIXED_TIMES =
  "the column has times with a zone, and times or dates without one; choose the type of the column";
const NANO_DIGITS = 9;
const SECOND = 1_000_000_000n;
const DAY_SECONDS = 86_400;
export const DAY_NANOS = 86_400n * SECOND;

/** Reads a time of ISO 8601; undefined for a text that is none, or has more digits than nanoseconds. */
export function timeOfText(text: string): TimeText | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second = "0", fraction = "", utc, sign, zoneHour, zoneMinute] =
    match;
  const [y, m, d] = [Number(year), Number(month), Number(day)];
  const days = daysOf(y, m, d);
  const [sameYear, sameMonth, sameDay] = calendarOf(days);
  if (sameYear !== y || sameMonth !== m || sameDay !== d) return undefined;
  const zone =
    sign === undefined ? 0 : (Number(zoneHour) * 60 + Number(zoneMinute)) * (sign === "-" ? -60 : 60);
  const inDay = hour === undefined ? 0 : Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  return {
    nanos: BigInt(days) * DAY_NANOS + BigInt(inDay - zone) * SECOND + nanosOfFraction(fraction),
    hasZone: utc !== undefined || sign !== undefined,
    isDate: hour === undefined,
    fraction: fraction.length,
  };
}

/** Reads a time of day in nanoseconds; undefined for a text that is none. */
export function timeOfDay(text: string): bigint | undefined {
  const match = TIME_OF_DAY.exec(text);
  if (match === null) return undefined;
  const [, hour, minute, second = "0", fraction = ""] = match;
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  return BigInt(seconds) * SECOND + nanosOfFraction(fraction);
}

function nanosOfFraction(digits: string): bigint {
  return digits === "" ? 0n : BigInt(digits.padEnd(NANO_DIGITS, "0"));
}

/** Returns the type for times with a number of digits of the fraction of a second: milliseconds, unless they lose digits. */
export function timeType(arrow: Arrow, fraction: number, zone: string | null): DataType {
  if (fraction <= 3) return new arrow.TimestampMillisecond(zone);
  return fraction <= 6 ? new arrow.TimestampMicrosecond(zone) : new arrow.TimestampNanosecond(zone);
}

/**
 * Writes a time as `2026-05-04T13:02:01.25`, with as many digits as it has.
 *
 * @param units units since 1970, of which a second has 10 to the power of `digits`
 */
export function textOfTime(units: bigint, digits: number): string {
  const [seconds, fraction] = split(units, 10n ** BigInt(digits));
  const [days, inDay] = split(seconds, BigInt(DAY_SECONDS));
  return `${textOfDay(Number(days))}T${clock(Number(inDay), fraction, digits)}`;
}

/** Writes a time of day as `13:02:01.25`; what is not within a day stays a number. */
export function textOfTimeOfDay(units: bigint, digits: number): string {
  const [seconds, fraction] = split(units, 10n ** BigInt(digits));
  if (seconds < 0n || seconds >= BigInt(DAY_SECONDS)) return String(units);
  return clock(Number(seconds), fraction, digits);
}

/** Writes a day since 1970 as `2026-05-04`; years beyond four digits have a sign and six digits at least. */
export function textOfDay(days: number): string {
  const [year, month, day] = calendarOf(days);
  const digits = year >= 0 && year <= 9999 ? 4 : 6;
  const sign = year < 0 ? "-" : year > 9999 ? "+" : "";
  return `${sign}${pad(Math.abs(year), digits)}-${pad(month)}-${pad(day)}`;
}

function clock(seconds: number, fraction: bigint, digits: number): string {
  const tail = fraction === 0n ? "" : `.${String(fraction).padStart(digits, "0").replace(/0+$/, "")}`;
  return `${pad(Math.floor(seconds / 3600))}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}${tail}`;
}

function split(value: bigint, by: bigint): [bigint, bigint] {
  const rest = ((value % by) + by) % by;
  return [(value - rest) / by, rest];
}

const pad = (value: number, digits = 2): string => String(value).padStart(digits, "0");

const ERA_DAYS = 146_097;
const MARCH_OF_YEAR_0 = 719_468;

/** Returns the days since 1970 of a date of the Gregorian calendar, whose years begin in March here. */
function daysOf(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * ERA_DAYS + dayOfEra - MARCH_OF_YEAR_0;
}

function calendarOf(days: number): readonly [year: number, month: number, day: number] {
  const z = days + MARCH_OF_YEAR_0;
  const era = Math.floor(z / ERA_DAYS);
  const dayOfEra = z - era * ERA_DAYS;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / (ERA_DAYS - 1))) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthOfYear = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthOfYear < 10 ? monthOfYear + 3 : monthOfYear - 9;
  const day = dayOfYear - Math.floor((153 * monthOfYear + 2) / 5) + 1;
  return [yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day];
}
