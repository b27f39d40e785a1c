import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { expiryOf } from "../../namespace/credential-options.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import type { SharedCounter } from "../../runtime/threads/sharing.ts";

/** Bounds of {@link createSlots}. */
export interface SlotLimits {
  readonly maxEntries: number;
  readonly maxBytes: number;
}

/** Values by a key and by their object; the least recently used is evicted first. */
export interface Slots<T> {
  /** Returns the value of a key, which counts as used now. */
  get(key: string): T | undefined;
  /** Whether a value has neither been replaced nor evicted. */
  has(key: string, value: T): boolean;
  /** Stores a value, replacing any other. */
  put(key: string, id: Identifier, value: T): void;
  delete(key: string): void;
  /** Evicts the values of an object, of those above it and of those below it. */
  clear(id: Identifier): void;
}

interface Slot<T> {
  readonly id: Identifier;
  readonly value: T;
}

/** A node in the tree of objects, with the keys of its values. */
interface Place {
  readonly children: Map<string, Place>;
  readonly keys: Set<string>;
}

/** Creates empty slots. */
export function createSlots<T extends { readonly bytes: number }>(limits: SlotLimits): Slots<T> {
  const { maxEntries, maxBytes } = limits;
  /** In order of their last use. */
  const slots = new Map<string, Slot<T>>();
  const root = createPlace();
  let held = 0;

  function remove(key: string): void {
    const slot = slots.get(key);
    if (slot === undefined) return;
    slots.delete(key);
    held -= slot.value.bytes;
    forget(root, slot.id, key);
  }

  function evict(): void {
    for (const key of slots.keys()) {
      if (slots.size <= maxEntries && held <= maxBytes) return;
      remove(key);
    }
  }

  return {
    get(key) {
      const slot = slots.get(key);
      if (slot === undefined) return undefined;
      slots.delete(key);
      slots.set(key, slot);
      return slot.value;
    },

    has: (key, value) => slots.get(key)?.value === value,

    put(key, id, value) {
      remove(key);
      slots.set(key, { id, value });
      held += value.bytes;
      placeOf(root, id).keys.add(key);
      evict();
    },

    delete: remove,

    clear(id) {
      for (const key of related(root, id)) remove(key);
    },
  };
}

function createPlace(): Place {
  return { children: new Map(), keys: new Set() };
}

function placeOf(root: Place, id: Identifier): Place {
  let place = root;
  for (const name of id) {
    const next = place.children.get(name) ?? createPlace();
    place.children.set(name, next);
    place = next;
  }
  return place;
}

/** Removes a key from its node, and empty nodes from the tree. */
function forget(place: Place, [name, ...rest]: Identifier, key: string): void {
  if (name === undefined) {
    place.keys.delete(key);
    return;
  }
  const child = place.children.get(name);
  if (child === undefined) return;
  forget(child, rest, key);
  if (child.keys.size === 0 && child.children.size === 0) place.children.delete(name);
}

/** Returns the keys on the path to an object, at it and below it. */
function related(root: Place, id: Identifier): string[] {
  const keys = [...root.keys];
  let place = root;
  for (const name of id) {
    const next = place.children.get(name);
    if (next === undefined) return keys;
    place = next;
    // As the arguments of one call, the keys of very many callers would be too many.
    for (const key of place.keys) keys.push(key);
  }
  collectBelow(place, keys);
  return keys;
}

function collectBelow({ children }: Place, keys: string[]): void {
  for (const child of children.values()) {
    for (const key of child.keys) keys.push(key);
    collectBelow(child, keys);
  }
}

/** How long an answer may be used, in milliseconds since it was requested. */
interface Lifetime {
  /** Without revalidation. */
  readonly freshMs: number;
  /** After revalidation by the upstream. */
  readonly usableMs: number;
}

interface Answer extends Message {
  context?: Record<string, string>;
  storageOptions?: Record<string, string>;
}

/** How long before their expiry credentials are no longer returned, in milliseconds: a client needs some time. */
const CREDENTIALS_MARGIN_MS = 60_000;
const MAX_AGE = /(?:^|[\s,])max-age\s*=\s*"?(\d+)/i;

/**
 * Returns how long an answer may be used.
 *
 * @param ttlMs how long without revalidation, unless the upstream or credentials in the answer say less
 */
export function lifetimeOf(answer: Message, ttlMs: number, cacheControl = ""): Lifetime {
  const usableMs = /\bno-store\b/i.test(cacheControl) ? 0 : credentialsMs(answer);
  return { freshMs: Math.min(freshByHeader(cacheControl, ttlMs), usableMs), usableMs };
}

function freshByHeader(cacheControl: string, ttlMs: number): number {
  if (/\bno-cache\b/i.test(cacheControl)) return 0;
  const [, seconds] = MAX_AGE.exec(cacheControl) ?? [];
  return seconds === undefined ? ttlMs : Math.min(ttlMs, Number(seconds) * 1000);
}

const TEMPORARY = /token|sas|signature|expir/i;

/** Returns how long the credentials in an answer may be returned; 0 if they seem temporary but have no expiry. */
function credentialsMs({ storageOptions = {} }: Answer): number {
  const expiry = expiryOf(storageOptions);
  if (expiry !== undefined) return Math.max(expiry - Date.now() - CREDENTIALS_MARGIN_MS, 0);
  return Object.keys(storageOptions).some((key) => TEMPORARY.test(key)) ? 0 : Number.POSITIVE_INFINITY;
}

/** Headers that describe the object; all others describe an exchange. */
const LASTING: ReadonlySet<string> = new Set(["etag", "deprecation", "sunset"]);
const CONTEXT_PREFIX = "header.";

/** Returns the headers of a cached answer. */
export function lastingHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => LASTING.has(name)));
}

/** Returns an answer without the parts that describe its exchange. */
export function packAnswer(schema: DescMessage, answer: Message): Uint8Array {
  const { context } = answer as Answer;
  if (context === undefined) return toBinary(schema, answer);
  const lasting = Object.entries(context).filter(
    ([key]) => !key.startsWith(CONTEXT_PREFIX) || LASTING.has(key.slice(CONTEXT_PREFIX.length)),
  );
  return toBinary(schema, { ...answer, context: Object.fromEntries(lasting) } as Message);
}

/**
 * Evicts all values when another worker of the process has cleared some, so that a caller that was answered by one
 * worker sees its write through all of them.
 *
 * @param clears number of times that workers have cleared objects. Default: there is a single worker.
 */
export function shareClears<T>(slots: Slots<T>, clears: SharedCounter | undefined): Slots<T> {
  if (clears === undefined) return slots;
  let seen = clears.value;

  function followOthers(): void {
    const { value } = clears as SharedCounter;
    if (value === seen) return;
    seen = value;
    slots.clear([]);
  }
  return {
    ...slots,
    get(key) {
      followOthers();
      return slots.get(key);
    },
    has(key, value) {
      followOthers();
      return slots.has(key, value);
    },
    clear(id) {
      slots.clear(id);
      if (clears.increment() === seen) seen++;
    },
  };
}
