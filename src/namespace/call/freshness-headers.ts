import { LanceError } from "../errors.ts";

/** Headers by which a client demands the newest version that it has written, and the newest that it has read. */
const MIN_VERSIONS = ["x-lancedb-min-version", "x-lancedb-min-read-version"] as const;

/** Header by which a client demands the state of a time, in the form of RFC 3339. */
const MIN_TIMESTAMP = "x-lancedb-min-timestamp";

/** Headers by which LanceDB's clients demand how new the state is that answers a read. */
export const FRESHNESS_HEADERS: readonly string[] = [...MIN_VERSIONS, MIN_TIMESTAMP];

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.(\d+))?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Whether a call demands how new the state is that answers it. */
export function demandsFreshness(headers: Readonly<Record<string, string>>): boolean {
  return FRESHNESS_HEADERS.some((name) => headers[name] !== undefined);
}

/**
 * Returns the time whose state the headers of a call demand, in epoch milliseconds; undefined if they demand none. A
 * demanded version may have any age, so it demands the present state. A time in the future is the present, by the clock
 * of this machine.
 *
 * @throws LanceError InvalidInput for a malformed header
 */
export function demandedTime(
  headers: Readonly<Record<string, string>>,
  now = Date.now(),
): number | undefined {
  let demanded: number | undefined;
  for (const name of MIN_VERSIONS) {
    const value = headers[name];
    if (value === undefined) continue;
    if (!/^\d{1,20}$/.test(value)) throw malformed(name, "a version");
    demanded = now;
  }
  const text = headers[MIN_TIMESTAMP];
  if (text === undefined) return demanded;
  const match = RFC_3339.exec(text);
  const time = match === null ? Number.NaN : Date.parse(text);
  if (Number.isNaN(time)) throw malformed(MIN_TIMESTAMP, "a time in the form of RFC 3339");
  // Digits below a millisecond are cut off.
  const isCut = (match?.[1]?.length ?? 0) > 3;
  return demanded ?? Math.min(isCut ? time + 1 : time, now);
}

function malformed(name: string, form: string): LanceError {
  return new LanceError("InvalidInput", `the value of header ${name} is not ${form}`);
}
