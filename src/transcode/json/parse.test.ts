import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { jsonErrorPosition } from "./parse.ts";

test("the position is that of the first token that does not fit", () => {
  for (const [text, position] of [
    ["", 0],
    ["  {", 3],
    ["{,", 1],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ["[1,]", 3],
    ["[1 2]", 3],
    ["[1}", 2],
    ["{} x", 3],
    ["tru", 0],
    ["01", 1],
    ['"a\nb"', 0],
    ['{"a":"\\x"}', 5],
    ["\ufeff{}", 0],
  ] as const) {
    assert.equal(jsonErrorPosition(text), position, JSON.stringify(text));
  }
});

test("valid JSON is read to its end", () => {
  fc.assert(fc.property(fc.json(), (text) => assert.equal(jsonErrorPosition(text), text.length)));
});

test("finds a position within every text that the engine refuses", () => {
  const noise = fc.tuple(fc.json(), fc.nat(), fc.constantFrom(...'{}[]",:x1\\')).map(([text, at, char]) => {
    const position = at % (text.length + 1);
    return text.slice(0, position) + char + text.slice(position);
  });
  fc.assert(
    fc.property(noise, (text) => {
      const position = jsonErrorPosition(text);
      assert.ok(position >= 0 && position <= text.length);
    }),
  );
});
