import fc from "fast-check";

/** Surrogates: code points that are not characters of their own. */
const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;
const LAST_CODE_POINT = 0x10ffff;

/**
 * Any code point: a unit of strings that draws what fast-check's unit "binary" draws from the same seed. Each process
 * that uses "binary" keeps a table of all code points, which takes most of a second and tens of megabytes.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .nat(LAST_CODE_POINT - SURROGATES)
  .map((index) => String.fromCodePoint(index < FIRST_SURROGATE ? index : index + SURROGATES), indexOf);

function indexOf(value: unknown): number {
  if (typeof value !== "string" || !value.isWellFormed()) throw new Error("not a string of code points");
  const [code, ...others] = Array.from(value, (character) => character.codePointAt(0) as number);
  if (code === undefined || others.length > 0) throw new Error("not a single code point");
  return code < FIRST_SURROGATE ? code : code - SURROGATES;
}
