import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Role } from "../../namespace/call/principal.ts";
import { changeKeyFile, type KeyRecord } from "./key-file.ts";

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
