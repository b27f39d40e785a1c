import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { isLanceError } from "../../namespace/errors.ts";
import { atOnce } from "../../runtime/pace.ts";
import { parseJson, parseRequestExactly } from "./parse.ts";
import { scanJson } from "./scan.ts";

const MIB = 1024 * 1024;

const count = (bytes: Uint8Array, maxDepth: number, maxCost?: number) =>
  atOnce(scanJson(bytes, { maxDepth, maxCost }));

const refused = (text: RegExp) => (error: unknown) =>
  isLanceError(error, "InvalidInput") && text.test(error.message);

function depthOf(json: unknown): number {
  if (typeof json !== "object" || json === null) return 0;
  return 1 + Math.max(0, ...Object.values(json).map(depthOf));
}

function valuesOf(json: unknown): number {
  if (typeof json !== "object" || json === null) return 1;
  return Object.values(json).reduce((sum: number, value) => sum + valuesOf(value), 1);
}

test("JSON is as deep for the scan as it is for the parser", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.nat(40), (text, padding) => {
      const bytes = Buffer.from(" ".repeat(padding) + text);
      const [depth, values] = [depthOf(JSON.parse(text)), valuesOf(JSON.parse(text))];
      const counted = count(bytes, depth);
      assert.ok(counted >= values && counted <= 2 * values, `${counted} for ${values}`);
      if (depth > 0) assert.throws(() => count(bytes, depth - 1), refused(/nested too deeply/));
    }),
  );
});

test("brackets, quotes and backslashes inside texts do not count", () => {
  for (const text of [
    "[".repeat(100),
    '"',
    "\\",
    '\\"[',
    `${"x".repeat(100)}"[{`,
    `${"y".repeat(40)}\\${"[".repeat(9)}`,
  ]) {
    assert.equal(count(Buffer.from(JSON.stringify({ a: [text], b: text })), 2), 4);
  }
});

test("megabytes of brackets, objects, names and items are refused", () => {
  const many = (piece: string, bytes = 16 * MIB) => Buffer.from(`[${piece.repeat(bytes / piece.length)}`);
  assert.throws(() => count(many("["), 64), refused(/nested too deeply/));
  assert.throws(() => count(many('{"a":'), 64), refused(/nested too deeply/));
  assert.throws(() => count(many("{},"), 64), refused(/too much/));
  assert.throws(() => count(many('"a":1,'), 64), refused(/too much/));
  assert.throws(() => count(many("1,"), 64), refused(/too much/));
  assert.throws(() => count(many('"abc",', MIB), 64), refused(/too much/));
  count(Buffer.from(JSON.stringify(Array(900_000).fill(0.25))), 64);
  count(Buffer.from(JSON.stringify("x\n".repeat(8 * MIB))), 64);
  count(many(" "), 64);
});

test("a long text is scanned in steps, whatever it contains", () => {
  for (const text of [JSON.stringify(Array(800_000).fill(0.25)), " ".repeat(4 * MIB), "1".repeat(4 * MIB)]) {
    const steps = scanJson(Buffer.from(text), { maxDepth: 64 });
    let yields = 0;
    for (let step = steps.next(); !step.done; step = steps.next()) yields++;
    assert.ok(yields >= 10, `${yields} steps`);
  }
});

test("a reader that takes fewer values refuses the others", () => {
  const bytes = Buffer.from(JSON.stringify(Array(1000).fill(1)));
  assert.equal(count(bytes, 64, 1005), 1001);
  assert.throws(
    () => count(bytes, 64, 800),
    refused(/: 800 values, 160 objects and lists, 100 short texts or 40 names/),
  );
});

test("a short text costs eight values unless it is a name, and a long one as much as any value", () => {
  const list = (text: string) => Buffer.from(JSON.stringify(Array(100).fill(text)));
  count(list("a".repeat(10)), 64, 804);
  assert.throws(() => count(list("a".repeat(10)), 64, 803), refused(/too much/));
  count(list("a".repeat(11)), 64, 104);
  const names = Buffer.from(
    JSON.stringify(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`n${i}`, 1]))),
  );
  count(names, 64, 2104);
  assert.throws(() => count(names, 64, 2103), refused(/too much/));
});

test("an exact integer among many values is refused", () => {
  const text = '{"a":9007199254740993}';
  assert.equal((parseRequestExactly(text) as { a: bigint }).a, 9007199254740993n);
  assert.equal((parseRequestExactly(text, 20_000) as { a: bigint }).a, 9007199254740993n);
  assert.throws(() => parseRequestExactly(text, 20_001), refused(/more than 53 bits/));
});

test("numbers of a million digits are read", () => {
  assert.equal(parseJson(`${"1".repeat(MIB)}`, "x"), Number.POSITIVE_INFINITY);
  assert.equal(parseJson("1e999999", "x"), Number.POSITIVE_INFINITY);
  assert.equal(parseJson(`0.${"0".repeat(MIB)}1`, "x"), 0);
});

test("omits the position in the error of a long text that is not JSON", () => {
  assert.throws(() => parseJson("[1,", "x"), refused(/position 3 /));
  assert.throws(() => parseJson(`${"\n".repeat(16 * MIB)}[`, "x"), refused(/^x is not valid JSON$/));
});
