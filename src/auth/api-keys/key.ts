import { hash, randomBytes, timingSafeEqual } from "node:crypto";

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
