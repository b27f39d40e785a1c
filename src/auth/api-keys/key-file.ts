import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { ROLE_NAMES, type Role } from "../../namespace/call/principal.ts";
import { parseIdentifier } from "../../namespace/identifier.ts";
import { readText } from "../../runtime/files/files-in-time.ts";
import { ITEMS_PER_STEP, inSlices, type Steps } from "../../runtime/pace.ts";
import { isJsonObject } from "../../runtime/text.ts";
import { replaceOwnedFile } from "../owned-file.ts";

const ID_BYTES = 6;
const SECRET_BYTES = 32;
const SCHEME = "sha256:";
const FORM = /^lgw_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

/** A new key: the text that the caller sends, and what the gateway keeps of it. */
export interface NewKey {
  readonly text: string;
  readonly id: string;
  readonly hash: string;
}

/** Draws a key: a public id and 256 random bits, `lgw_<id>_<secret>`. */
export function drawKey(): NewKey {
  const id = randomBytes(ID_BYTES).toString("hex");
  const text = `lgw_${id}_${randomBytes(SECRET_BYTES).toString("base64url")}`;
  return { text, id, hash: hashOf(text) };
}

/**
 * Returns the hash that a file keeps. A single round suffices, since nobody can try 2^256 keys; slow hashes protect
 * passwords that people choose.
 */
export function hashOf(text: string): string {
  return SCHEME + hash("sha256", text, "base64url");
}

/** Returns the public id in the text of a key; undefined if the text is no key. */
export function idOf(text: string): string | undefined {
  return FORM.exec(text)?.[1];
}

/** Returns the digest in a hash that a file keeps, as text. */
export function digestIn(kept: string): Buffer {
  return Buffer.from(kept.slice(SCHEME.length), "latin1");
}

/** Whether a text has a digest, in a time that does not depend on where they differ. */
export function hasDigest(text: string, expected: Buffer): boolean {
  // The library takes three times as long for bytes as for their text.
  const own = Buffer.from(hash("sha256", text, "base64url"), "latin1");
  return own.length === expected.length && timingSafeEqual(own, expected);
}

/** The caller of a new key. */
interface KeyChoice {
  readonly name: string;
  readonly role: Role;
  readonly groups: readonly string[];
  /** Objects that the key is restricted to; none for no restriction. */
  readonly scope: readonly string[];
  /** How long the key is accepted, in milliseconds. Default: without an end. */
  readonly lifetimeMs?: number | undefined;
}

/** What a file of keys has about a key, except for its hash. */
export type KeyFacts = Omit<KeyRecord, "hash">;

/** A key with the text that its caller sends, which nothing keeps. */
interface IssuedKey {
  readonly text: string;
  readonly facts: KeyFacts;
}

/** Draws a key and adds it to a file. @throws Error as {@link changeKeyFile} does */
export async function issueKey(path: string, choice: KeyChoice): Promise<IssuedKey> {
  const { name, role, groups, scope, lifetimeMs } = choice;
  const { text, id, hash } = drawKey();
  const now = Date.now();
  const facts: KeyFacts = {
    ...{ id, name, role },
    ...(groups.length > 0 && { groups }),
    ...(scope.length > 0 && { scope }),
    created: new Date(now).toISOString(),
    ...(lifetimeMs !== undefined && { expires: new Date(now + lifetimeMs).toISOString() }),
  };
  await changeKeyFile(path, (keys) => [...keys, { ...facts, hash }]);
  return { text, facts };
}

/** Removes a key from a file; returns whether there was one. Otherwise the file stays as it is. @throws Error as {@link changeKeyFile} does */
export async function revokeKey(path: string, id: string): Promise<boolean> {
  let isKnown = false;
  await changeKeyFile(path, (keys) => {
    isKnown = keys.some((key) => key.id === id);
    return isKnown ? keys.filter((key) => key.id !== id) : undefined;
  });
  return isKnown;
}

/** What the gateway keeps of a key. */
export interface KeyRecord {
  /** Public part of the key. */
  readonly id: string;
  /** Name of the caller. Several keys may have the same one, so that a key can be replaced without an interruption. */
  readonly name: string;
  readonly role: Role;
  /** Groups of the caller. Default: none. */
  readonly groups?: readonly string[];
  /** Objects that the key is restricted to, as joined identifiers; the database first if databases have names. Default: all. */
  readonly scope?: readonly string[];
  readonly hash: string;
  /** Time of creation, ISO 8601. */
  readonly created: string;
  /** Time after which the key is refused, ISO 8601. Default: never. */
  readonly expires?: string;
}

const FIELDS = ["id", "name", "role", "hash", "created", "expires"] as const;
const OPTIONAL: ReadonlySet<string> = new Set(["expires"]);
const LISTS = ["groups", "scope"] as const;
const ID = /^[0-9a-f]{12}$/;
const HASH = /^sha256:[A-Za-z0-9_-]{43}$/;

/**
 * Reads a file of keys.
 *
 * @throws Error with a single line that names the file and the key, and no part of a hash.
 */
export async function readKeyFile(path: string): Promise<readonly KeyRecord[]> {
  return inSlices(parseKeys(await readText(path), path));
}

/**
 * Parses the text of a file of keys, `{"keys": [...]}`, in steps: a gateway that reads thousands of keys again answers calls meanwhile.
 *
 * @throws Error with a single line that names the file and the key.
 */
export function* parseKeys(text: string, path: string): Steps<readonly KeyRecord[]> {
  const parsed = jsonOf(text);
  if (!isJsonObject(parsed) || !Array.isArray(parsed["keys"]))
    throw new Error(`${path} is not a file of keys: it must be {"keys": [...]} in JSON`);
  const byId = new Map<string, KeyRecord>();
  for (const [index, value] of parsed["keys"].entries()) {
    if (index % ITEMS_PER_STEP === 0) yield;
    const record = recordOf(value, `${path}: keys[${index}]`);
    if (byId.has(record.id)) throw new Error(`${path} has the key ${record.id} twice`);
    byId.set(record.id, record);
  }
  return [...byId.values()];
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function recordOf(value: unknown, at: string): KeyRecord {
  if (!isJsonObject(value)) throw new Error(`${at} must be an object`);
  for (const field of FIELDS) {
    if (value[field] === undefined && OPTIONAL.has(field)) continue;
    if (typeof value[field] !== "string") throw new Error(`${at}.${field} must be a text`);
  }
  for (const list of LISTS) {
    if (value[list] !== undefined && !isListOfNames(value[list]))
      throw new Error(`${at}.${list} must be a list of names`);
  }
  const known: readonly string[] = [...FIELDS, ...LISTS];
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  // A restriction that this version does not know must not be ignored.
  if (unknown !== undefined) throw new Error(`${at}.${unknown} is not known`);
  const record = value as unknown as KeyRecord;
  if (!ID.test(record.id)) throw new Error(`${at}.id must have 12 hexadecimal digits`);
  if (!HASH.test(record.hash)) throw new Error(`${at}.hash must be sha256: and 43 characters`);
  if (!ROLE_NAMES.includes(record.role))
    throw new Error(`${at}.role must be one of ${ROLE_NAMES.join(", ")}`);
  if (record.expires !== undefined && Number.isNaN(Date.parse(record.expires)))
    throw new Error(`${at}.expires must be a time in ISO 8601`);
  for (const object of record.scope ?? []) {
    const fault = faultOfScope(object);
    if (fault !== undefined) throw new Error(`${at}.scope has a mistake: ${fault}`);
  }
  return record;
}

function isListOfNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string" && each !== "");
}

/** Returns why a key cannot be restricted to an object: the root restricts nothing, and some names no object can have. */
export function faultOfScope(object: string): string | undefined {
  try {
    return parseIdentifier(object).length === 0 ? "the root restricts nothing" : undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Changes a file of keys as a whole: a reader sees all of the change or nothing, and two changes at the same time do not lose one
 * another. A missing file has no keys; the new one is readable by its owner alone.
 *
 * @param change returns the new keys, or undefined to leave the file as it is.
 * @throws Error with a single line if the file cannot be read or written, or another process changes it.
 */
export async function changeKeyFile(
  path: string,
  change: (keys: readonly KeyRecord[]) => readonly KeyRecord[] | undefined,
): Promise<void> {
  await replaceOwnedFile(path, async () => {
    const keys = await readKeyFile(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    const changed = change(keys);
    return changed && `${JSON.stringify({ keys: changed }, null, 2)}\n`;
  });
}
