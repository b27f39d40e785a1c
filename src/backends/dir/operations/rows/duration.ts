import { LanceError } from "../../../../namespace/errors.ts";

/** Number of milliseconds of each unit. */
const UNITS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

const DURATION = /^(?:\d+(?:\.\d+)?(?:us|ms|s|m|h))+$/;
const PART = /(\d+(?:\.\d+)?)(us|ms|s|m|h)/g;

/**
 * Reads a duration: numbers with units, such as "500ms", "30s", "1m30s".
 *
 * @returns milliseconds, more than 0; undefined for an absent or blank text
 * @throws LanceError InvalidInput
 */
export function parseDuration(name: string, text: string | undefined): number | undefined {
  const trimmed = text?.trim();
  if (!trimmed) return undefined;
  let total = 0;
  if (DURATION.test(trimmed)) {
    for (const [, number, unit] of trimmed.matchAll(PART))
      total += Number(number) * (UNITS[unit as string] as number);
  }
  if (total > 0) return total;
  throw new LanceError(
    "InvalidInput",
    `${name} ${JSON.stringify(text)} is not a length of time above zero, such as "500ms", "30s" or "5m"`,
  );
}
