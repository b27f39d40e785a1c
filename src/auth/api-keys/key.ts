import { hash, randomBytes, timingSafeEqual } from "node:crypto";

const ID_BYTES = 6;
const SECRET_BYTES = 32;
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
  return `sha256:${hash("sha256", text, "base64url")}`;
}

/** Returns the public id in the text of a key; undefined if the text is no key. */
export function idOf(text: string): string | undefined {
  return FORM.exec(text)?.[1];
}

/** Whether a text has a hash, in a time that does not depend on where they differ. */
export function hasHash(text: string, expected: string): boolean {
  const [mine, its] = [Buffer.from(hashOf(text)), Buffer.from(expected)];
  return mine.length === its.length && timingSafeEqual(mine, its);
}
