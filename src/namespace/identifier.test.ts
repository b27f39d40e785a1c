import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { codePoint } from "../../test/support/characters.ts";
import { isLanceError } from "./errors.ts";
import {
  checkIdentifier,
  checkNewName,
  isNewName,
  joinIdentifier,
  MAX_IDENTIFIER_BYTES,
  MAX_IDENTIFIER_DEPTH,
  parseIdentifier,
} from "./identifier.ts";

const invalid = (error: unknown) => isLanceError(error, "InvalidInput");
const newName = fc.string({ unit: codePoint, minLength: 1, maxLength: 6 }).filter(isNewName);
const delimiter = fc.constantFrom("$", "/", "\\", "\n", "$$");

describe("parseIdentifier", () => {
  it("gives back every list of names that was joined with the same delimiter", () => {
    fc.assert(
      fc.property(fc.array(newName, { maxLength: 8 }), delimiter, (names, by) => {
        assert.deepEqual(parseIdentifier(joinIdentifier(names, by), by), names);
      }),
    );
  });

  it("takes the delimiter alone and the empty text for the root", () => {
    assert.deepEqual(parseIdentifier("$"), []);
    assert.deepEqual(parseIdentifier(""), []);
    assert.deepEqual(parseIdentifier(".", "."), []);
  });

  it("refuses empty names, so that an object has one spelling", () => {
    for (const text of ["$$", "a$$b", "$a", "a$"]) assert.throws(() => parseIdentifier(text), invalid, text);
  });

  it("refuses `$` in a name with another delimiter, because it would mean a nested object", () => {
    assert.throws(() => parseIdentifier("a$b", "."), invalid);
    assert.throws(() => checkIdentifier(["a$b"]), invalid);
  });

  it("refuses an empty delimiter, and a long one, which answers would repeat for every name", () => {
    assert.throws(() => parseIdentifier("ab", ""), invalid);
    assert.throws(() => parseIdentifier("ab", "x".repeat(33)), invalid);
  });

  it("bounds depth and length", () => {
    const deep = Array.from({ length: MAX_IDENTIFIER_DEPTH }, () => "n");
    assert.equal(parseIdentifier(deep.join("$")).length, MAX_IDENTIFIER_DEPTH);
    assert.throws(() => parseIdentifier([...deep, "n"].join("$")), invalid);
    assert.equal(parseIdentifier("n".repeat(MAX_IDENTIFIER_BYTES)).length, 1);
    assert.throws(() => parseIdentifier("n".repeat(MAX_IDENTIFIER_BYTES + 1)), invalid);
  });
});

describe("checkNewName", () => {
  it("accepts letters of all scripts, digits, punctuation and inner spaces", () => {
    const names = [
      "a",
      "A.b-c_d",
      "a b",
      "ä",
      "e\u0301",
      "日本",
      "می\u200cخواهم",
      "😀",
      "a+b",
      "100%",
      "a%20b",
      ".a",
      "a..b",
      "#&",
    ];
    for (const name of names) checkNewName(name);
  });

  it("refuses delimiters, wildcards, control characters, outer spaces, half characters and dots, also encoded ones", () => {
    const names = [
      "",
      "a*",
      "?a",
      "a%2Fb",
      "%5ca",
      " ",
      " a",
      "a ",
      "\u00a0a",
      "a/b",
      "a\\b",
      "a$b",
      "a'b",
      "a\n",
      "a\tb",
      "a\0",
      "a\u007f",
      "a\u2028b",
      "\ud83d",
    ];
    const dots = [".", "..", "%2e%2E", "..;a=b", "a%2f..", "a%5c.%5cb"];
    for (const name of [...names, ...dots]) {
      assert.throws(() => checkNewName(name), invalid, JSON.stringify(name));
    }
  });
});
