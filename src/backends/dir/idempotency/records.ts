import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { type ErrorName, LanceError } from "../../../namespace/errors.ts";
import {
  type EarlierCall,
  type IdempotencyRecords,
  isEarlier,
  type KeptOutcome,
  type TakenKey,
} from "../../../namespace/lance-namespace.ts";
import { damagedFile, parseJsonFile } from "../format/files/damaged-file.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { hasLeft, type Owner, THIS_PROCESS } from "../ownership/owner.ts";

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

/** The calls of this process that are in flight. The record of any other says that it runs only if its end could not be written. */
const inFlight = new Set<string>();

/** The calls of this process whose records a bucket may write once more, also after a deletion: an attempt had no answer. */
const unanswered = new Set<string>();

/** A record as it is stored. */
interface StoredCall {
  /** Distinguishes calls that compete for a key. */
  readonly call: string;
  readonly owner: Owner;
  readonly request: string;
  /** A released record counts as none; it stays where a deletion could let an earlier one come back. */
  readonly state: EarlierCall["state"] | "released";
  readonly body?: string | undefined;
  /** In base64. */
  readonly answer?: string | undefined;
  readonly error?: { readonly kind: ErrorName; readonly message: string } | undefined;
}

/** Begins a call of this process with a request. */
function beginCall(request: string): StoredCall {
  const call: StoredCall = { call: randomUUID(), owner: THIS_PROCESS, request, state: "running" };
  // Before others can see its record.
  inFlight.add(call.call);
  return call;
}

/** Writes the record of a call unless another call has the key; returns whether it did. */
async function writeCall(store: ObjectStore, own: string, call: StoredCall): Promise<boolean> {
  const noteUnclear = () => void unanswered.add(call.call);
  if (await store.putIfAbsent(own, encode(call), undefined, noteUnclear)) return true;
  const found = await store.getTagged(own);
  if (found === undefined || parse(own, found.bytes).state !== "released") return false;
  noteUnclear();
  return store.replace(own, encode(call), found.tag);
}

/** Reads a record; returns undefined if the key is free. */
async function readCall(store: ObjectStore, at: string): Promise<EarlierCall | undefined> {
  const bytes = await store.get(at);
  return bytes && earlierCall(parse(at, bytes));
}

/** Returns what the holder of a key does with the record of its call. */
function takenKey(store: ObjectStore, own: string, stored: StoredCall): TakenKey {
  const end = (writing: Promise<unknown>) => writing.then(() => {}).finally(() => forget(stored));
  return {
    keep: (outcome, body) =>
      end(store.put(own, encode({ ...stored, state: "done", body, ...storedOutcome(outcome) }))),
    lose: () => end(store.put(own, encode({ ...stored, state: "ended" }))),
    release: () => end(giveBack(store, own, stored)),
  };
}

/**
 * Removes the record of a call that changes nothing, so that a repetition may run. Its own record only: what a storage
 * carries out late does not take the key from the repetition.
 */
async function giveBack(store: ObjectStore, own: string, stored: StoredCall): Promise<void> {
  const found = await store.getTagged(own);
  const there = found && parse(own, found.bytes);
  const isOwn = there?.call === stored.call;
  if (!unanswered.has(stored.call)) {
    if (found !== undefined && isOwn) await store.deleteTagged(own, found.tag);
    return;
  }
  // A write that the storage has not answered meets this record, even if it is carried out only now.
  const released = encode({ ...stored, state: "released" });
  if (found === undefined) {
    if (!(await store.putIfAbsent(own, released))) await giveBack(store, own, stored);
  } else if (isOwn || there?.state === "released") await store.replace(own, released, found.tag);
}

/** Forgets a call that this process does not carry out any longer. */
function forget({ call }: StoredCall): void {
  inFlight.delete(call);
  unanswered.delete(call);
}

function encode(call: StoredCall): Uint8Array {
  return Buffer.from(JSON.stringify(call));
}

function parse(key: string, bytes: Uint8Array): StoredCall {
  const call = parseJsonFile(key, bytes) as Partial<StoredCall>;
  if (call.owner === undefined || call.state === undefined) throw damagedFile(key, "holds no call");
  return call as StoredCall;
}

function storedOutcome(outcome: KeptOutcome): Pick<StoredCall, "answer" | "error"> {
  if ("error" in outcome) return { error: outcome.error };
  return { answer: outcome.answer && Buffer.from(outcome.answer).toString("base64") };
}

/** Returns what a record says of an earlier call; undefined if the key is free. */
async function earlierCall(stored: StoredCall): Promise<EarlierCall | undefined> {
  const { call, owner, request, state, body, answer, error } = stored;
  if (state === "released") return undefined;
  if (state !== "done") {
    const isOver = state === "ended" || (await hasLeft(owner, inFlight.has(call)));
    return { request, state: isOver ? "ended" : "running" };
  }
  const kept = answer === undefined ? undefined : Buffer.from(answer, "base64");
  return { request, state, body, outcome: error === undefined ? { answer: kept } : { error } };
}
