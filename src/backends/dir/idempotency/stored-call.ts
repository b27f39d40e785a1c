import { randomUUID } from "node:crypto";
import type { EarlierCall, KeptOutcome, TakenKey } from "../../../namespace/call/idempotency.ts";
import type { ErrorName } from "../../../namespace/errors.ts";
import { damagedFile, parseJsonFile } from "../format/files/damaged-file.ts";
import type { ObjectStore } from "../format/storage.ts";
import { hasLeft, type Owner, THIS_PROCESS } from "../ownership/owner.ts";

/** The calls of this process that are in flight. The record of any other says that it runs only if its end could not be written. */
const inFlight = new Set<string>();

/** The calls of this process whose records a bucket may write once more, also after a deletion: an attempt had no answer. */
const unanswered = new Set<string>();

/** A record as it is stored. */
export interface StoredCall {
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
export function beginCall(request: string): StoredCall {
  const call: StoredCall = { call: randomUUID(), owner: THIS_PROCESS, request, state: "running" };
  // Before others can see its record.
  inFlight.add(call.call);
  return call;
}

/** Writes the record of a call unless another call has the key; returns whether it did. */
export async function writeCall(store: ObjectStore, own: string, call: StoredCall): Promise<boolean> {
  const noteUnclear = () => void unanswered.add(call.call);
  if (await store.putIfAbsent(own, encode(call), undefined, noteUnclear)) return true;
  const found = await store.getTagged(own);
  if (found === undefined || parse(own, found.bytes).state !== "released") return false;
  noteUnclear();
  return store.replace(own, encode(call), found.tag);
}

/** Reads a record; returns undefined if the key is free. */
export async function readCall(store: ObjectStore, at: string): Promise<EarlierCall | undefined> {
  const bytes = await store.get(at);
  return bytes && earlierCall(parse(at, bytes));
}

/** Returns what the holder of a key does with the record of its call. */
export function takenKey(store: ObjectStore, own: string, stored: StoredCall): TakenKey {
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
export async function giveBack(store: ObjectStore, own: string, stored: StoredCall): Promise<void> {
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
export function forget({ call }: StoredCall): void {
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
