import type { Logger } from "pino";
import {
  type EarlierCall,
  type IdempotencyRecords,
  isEarlier,
  type TakenKey,
} from "../../../namespace/call/idempotency.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import {
  beginCall,
  forget,
  giveBack,
  readCall,
  type StoredCall,
  takenKey,
  writeCall,
} from "./stored-call.ts";

/** Time before midnight from which on another server's day may already be the next, in milliseconds. */
const MARGIN_MS = 60 * 60 * 1000;

/** Tries to take a key that others give back meanwhile. */
const MAX_TRIES = 5;

/** Options of {@link createIdempotencyRecords}. */
export interface IdempotencyOptions {
  /** Key of the catalog's base. */
  readonly base: string;
  readonly store: ObjectStore;
  readonly clock: StorageClock;
  readonly log: Logger;
}

/**
 * Creates the records of a catalog, in a directory for each day by the storage's clock. A call creates its record with a put-if-absent
 * and then looks for one of the day before, and around midnight of the day after; of two calls on different days at least one
 * sees the other. Days that are to come have records if the clock was set back: they count, too.
 *
 * The directories of days that are over for a day are deleted.
 */
export function createIdempotencyRecords(options: IdempotencyOptions): IdempotencyRecords {
  const { base, store, clock, log } = options;
  /** The days to come that had records when this process first called today's day today. */
  let laterDays: { readonly today: number; readonly days: Promise<readonly number[]> } | undefined;

  const keyOf = (day: number, key: string) => keyIn(directoryOf(base, day), key);

  async function find(key: string, days: readonly number[]): Promise<EarlierCall | undefined> {
    const found = await Promise.all(days.map((day) => readCall(store, keyOf(day, key))));
    return found.find((each) => each !== undefined);
  }
  function daysAfter(today: number): Promise<readonly number[]> {
    if (laterDays?.today === today) return laterDays.days;
    const days = lookAround(today).catch((error: unknown) => {
      laterDays = undefined;
      throw error;
    });
    laterDays = { today, days };
    return days;
  }
  /** Returns the days after today with records, and begins to remove those that are over. */
  async function lookAround(today: number): Promise<readonly number[]> {
    const days = await daysIn(base, store);
    removeOld(days, today).catch((error: unknown) => {
      log.warn({ err: error }, "old records of idempotency keys cannot be removed");
    });
    return days.filter((day) => day > today);
  }
  async function removeOld(days: readonly number[], today: number): Promise<void> {
    for (const day of days) if (isOld(day, today)) await store.deleteDirectory(directoryOf(base, day));
  }
  /** Makes an attempt to take a key; returns undefined if another one has to be made. */
  async function tryToTake(
    key: string,
    own: string,
    day: number,
    call: StoredCall,
  ): Promise<TakenKey | EarlierCall | undefined> {
    const later = await daysAfter(day);
    if (!(await writeCall(store, own, call))) return readCall(store, own);
    const now = await clock.now();
    const others = new Set([day - 1, ...(dayOf(now + MARGIN_MS) === day ? [] : [day + 1]), ...later]);
    const earlier = await find(key, [...others]);
    if (earlier === undefined && dayOf(now) === day) return takenKey(store, own, call);
    await giveBack(store, own, call);
    return earlier;
  }
  return {
    async take(key, request) {
      for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
        const day = dayOf(await clock.now());
        const own = keyOf(day, key);
        const call = beginCall(request);
        let result: TakenKey | EarlierCall | undefined;
        try {
          result = await tryToTake(key, own, day, call);
          if (result !== undefined) return result;
        } catch (error) {
          await giveBack(store, own, call).catch((failure: unknown) => {
            log.warn({ err: failure }, "the idempotency key of a call that does not run stays taken");
          });
          throw error;
        } finally {
          if (result === undefined || isEarlier(result)) forget(call);
        }
      }
      throw new LanceError(
        "ConcurrentModification",
        "other requests keep acquiring and releasing the idempotency key",
      );
    },
  };
}

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
async function daysIn(base: string, store: ObjectStore): Promise<number[]> {
  const names = await listNames(store, keyIn(base, IDEMPOTENCY_DIRECTORY));
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Whether no call looks at the records of a day any more. */
function isOld(day: number, today: number): boolean {
  return day < today - 1;
}

/** Returns the key of the directory with the records of a day. */
function directoryOf(base: string, day: number): string {
  return keyIn(base, `${IDEMPOTENCY_DIRECTORY}/${day}`);
}

/** Returns the day of a time in milliseconds since 1970. */
function dayOf(time: number): number {
  return Math.floor(time / DAY_MS);
}
