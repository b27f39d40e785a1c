import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { atOnce } from "../../runtime/pace.ts";
import { parseInParts } from "./parts.ts";

/** Parses in parts that are as small as the tests need them. */
function parsed(text: string, partBytes: number, parse?: (part: string) => unknown): unknown {
  return atOnce(parseInParts(Buffer.from(text), { partBytes, ...(parse && { parse }) }));
}

/** Returns the value that a parser makes of a text, or that it refuses the text. */
function outcome(parse: () => unknown): unknown {
  try {
    return { value: parse() };
  } catch (error) {
    assert.ok(error instanceof SyntaxError, String(error));
    return "no JSON";
  }
}

const aPartSize = fc.integer({ min: 1, max: 40 });

describe("parsing JSON in parts", () => {
  test("makes what JSON.parse makes", () => {
    const spaces = fc.constantFrom(undefined, 1, "\t");
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), spaces, aPartSize, (value, indent, size) => {
        const text = JSON.stringify(value, null, indent);
        assert.deepEqual(parsed(text, size), JSON.parse(text));
      }),
    );
  });

  test("refuses what JSON.parse refuses", () => {
    const piece = fc.constantFrom(
      "[",
      "]",
      "{",
      "}",
      ",",
      ":",
      '"',
      '"a"',
      "1",
      " ",
      "\\",
      "null",
      '"a":',
      "é",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), aPartSize, (pieces, size) => {
        const text = pieces.join("");
        const [own, known] = [outcome(() => parsed(text, size)), outcome(() => JSON.parse(text))];
        assert.deepEqual(own, known, text);
      }),
      { numRuns: 3_000 },
    );
    for (const text of [
      "[1,2,]",
      '{"a":1,}',
      "[1,2]]",
      '{"a":[1,2}',
      "[1,,2]",
      "[,1]",
      "[,123456]",
      "[ ,123456]",
      '{,"a":123456}',
      '{"a" 12345678}',
      "[1,2",
    ])
      for (const size of [1, 2, 3, 5])
        assert.throws(() => parsed(text, size), SyntaxError, `${text} by ${size}`);
  });

  test("keeps the last of equal names, and names with a meaning in JavaScript", () => {
    const text = '{"a":[1,2,3],"__proto__":{"b":1},"a":2,"constructor":[4,5,6]}';
    for (const size of [1, 8, 30]) {
      const value = parsed(text, size) as object;
      assert.deepEqual(Object.entries(value), Object.entries(JSON.parse(text)));
      assert.equal(Object.getPrototypeOf(value), Object.prototype);
    }
  });

  test("parses no more bytes at a time than it may, and refuses endless nesting", () => {
    const text = JSON.stringify({
      tables: Array.from({ length: 5_000 }, (_, i) => `t${i}`),
      deep: { more: [1] },
    });
    let longest = 0;
    const parse = (part: string) => {
      longest = Math.max(longest, part.length);
      return JSON.parse(part);
    };
    assert.deepEqual(parsed(text, 1_000, parse), JSON.parse(text));
    assert.ok(longest <= 1_020, `${longest} bytes at once`);
    assert.throws(() => parsed("[".repeat(5_000) + "]".repeat(5_000), 1_000), /nested too deeply/);
  });
});
