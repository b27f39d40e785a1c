import assert from "node:assert/strict";
import { test } from "vitest";
import { isLanceError } from "../../namespace/errors.ts";
import { refuseRepeatedNames } from "./repeated-names.ts";

const check = (text: string) => refuseRepeatedNames(text, JSON.parse(text), "request body");

test("a name that an object has twice is refused, however it is written and wherever the object is", () => {
  const cases = [
    ['{"id":["a"],"id":["b"]}', "id"],
    ['{"id" : 1,\n"\\u0069d":2}', "id"],
    ['{"a\\"":1,"b":2,"a\\"":3}', 'a\\"'],
    ['{"a\\\\":1,"a\\\\":3}', "a\\\\"],
    ['[{"b":{"c":[{"d":1,"e":2,"d":1}]}}]', "d"],
    ['{"__proto__":1,"__proto__":2}', "__proto__"],
    ['{"":1,"":2}', ""],
  ] as const;
  for (const [text, name] of cases) {
    const message = `request body repeats the name "${name}" in an object`;
    assert.throws(
      () => check(text),
      (error) => isLanceError(error, "InvalidInput") && error.message === message,
      text,
    );
  }
});

test("names of different objects, and texts that look like names, pass", () => {
  for (const text of [
    "{}",
    "null",
    '"a:b:"',
    '{"id":["id",":","id\\":"]}',
    '[{"id":1},{"id":1},{"id":{"id":null}}]',
    '{"a":"\\\\","b":"\\\\\\"","c":"\\":"}',
    '{"__proto__":{"a":1},"constructor":2}',
    `${"[".repeat(15_000)}{"a":1,"b":2}${"]".repeat(15_000)}`,
  ])
    check(text);
});
