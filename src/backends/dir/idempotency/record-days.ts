import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";

/** Directory of the records in the base of a catalog; implementations of the public format ignore it. */
export const IDEMPOTENCY_DIRECTORY = ".idempotency";

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Returns the directories of days that no call looks at any more.
 *
 * @param now a time that the storage's clock has reached, in milliseconds since 1970
 */
export async function findOldDays(base: string, store: ObjectStore, now: number): Promise<string[]> {
  const today = dayOf(now);
  const days = await daysIn(base, store);
  return days.filter((day) => isOld(day, today)).map((day) => directoryOf(base, day));
}

/** Returns the days that have records. */
export async function daysIn(base: string, store: ObjectStore): Promise<number[]> {
  const names = await listNames(store, keyIn(base, IDEMPOTENCY_DIRECTORY));
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Whether no call looks at the records of a day any more. */
export function isOld(day: number, today: number): boolean {
  return day < today - 1;
}

/** Returns the key of the directory with the records of a day. */
export function directoryOf(base: string, day: number): string {
  return keyIn(base, `${IDEMPOTENCY_DIRECTORY}/${day}`);
}

/** Returns the day of a time in milliseconds since 1970. */
export function dayOf(time: number): number {
  return Math.floor(time / DAY_MS);
}
