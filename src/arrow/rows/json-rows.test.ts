import assert from "node:assert/strict";
import {
  Dictionary,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  IntervalYearMonth,
  List,
  makeData,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Utf8,
  Vector,
  vectorFromArray,
} from "apache-arrow";
import { test } from "vitest";
import { isLanceError } from "../../namespace/errors.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { toJsonRows } from "./json-rows.ts";
import { shortest } from "./row-texts.ts";
import { wholeMessages } from "./whole-messages.ts";

async function* cut(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const streamOf = (columns: Record<string, Vector>) => tableToIPC(new Table(columns), "stream");

async function linesOf(bytes: Uint8Array, budget = createByteBudget()): Promise<string[]> {
  const pieces = toJsonRows(wholeMessages(cut(bytes, 4096), budget.open()), "lines");
  return Buffer.concat(await Array.fromAsync(pieces))
    .toString()
    .trimEnd()
    .split("\n");
}

test("rows leave in pieces, while other work runs", async () => {
  const items = makeData({ type: new Float32(), data: new Float32Array(2_000_000).fill(0.1) });
  const type = new FixedSizeList(1_000_000, new Field("item", new Float32(), true));
  const bytes = streamOf({ v: new Vector([makeData({ type, length: 2, nullCount: 0, child: items })]) });
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 1);
  let [largest, length] = [0, 0];
  for await (const { byteLength } of toJsonRows(
    wholeMessages(cut(bytes, 65_536), createByteBudget().open()),
    "array",
  )) {
    largest = Math.max(largest, byteLength);
    length += byteLength;
  }
  clearInterval(timer);
  assert.equal(length, 2 * ('{"v":[]}'.length + 1_000_000 * 4 - 1) + "[,\n]\n".length);
  assert.ok(largest < 128 * 1024, `a piece has ${largest} bytes`);
  assert.ok(turns >= 5, `other work ran ${turns} times`);
});

test("a long text is whole, wherever its pairs of surrogates are", async () => {
  for (const start of ["", "x"]) {
    const text = `${start}${'😀"\n'.repeat(200_000)}`;
    const [line] = await linesOf(streamOf({ t: vectorFromArray([text], new Utf8()) }));
    assert.equal(JSON.parse(line as string).t, text);
  }
});

test("empty maps and lists keep their form", async () => {
  const list = vectorFromArray([[], null], new List(new Field("item", new Int32(), true)));
  assert.deepEqual(await linesOf(streamOf({ list })), ['{"list":[]}', '{"list":null}']);
});

test("dictionaries count as long as they are in use, and batches until the next one", async () => {
  const words = vectorFromArray(
    Array.from({ length: 1000 }, (_, row) => `word ${row % 10}`),
    new Dictionary(new Utf8(), new Int32()),
  );
  const bytes = streamOf({ words });
  assert.equal((await linesOf(bytes)).length, 1000);
  const budget = createByteBudget(4000);
  await assert.rejects(linesOf(bytes, budget), (error) => isLanceError(error, "PayloadTooLarge"));
});

test("columns that rows as JSON cannot have are refused by name", async () => {
  const months = new Vector([makeData({ type: new IntervalYearMonth(), data: new Int32Array(2) })]);
  const group = vectorFromArray([{ a: 1 }], new Struct([new Field("a", new Int32(), true)]));
  const twice = new Schema(["a", "a"].map((name) => new Field(name, new Int32(), true)));
  const refusals: [Uint8Array, RegExp][] = [
    [streamOf({ group, months }), /^column "months" has the type interval, .* accept application/],
    [tableToIPC(new Table(twice), "stream"), /^the column "a" occurs twice/],
  ];
  for (const [bytes, message] of refusals)
    await assert.rejects(
      linesOf(bytes),
      (error) => isLanceError(error, "Unsupported") && message.test(error.message),
    );
});

test("a stream that ends early is refused", async () => {
  const bytes = streamOf({ n: vectorFromArray(new Int32Array(1000)) });
  for (const end of [0, 3, 100, bytes.length - 200])
    await assert.rejects(linesOf(bytes.subarray(0, end)), (error) => isLanceError(error, "InvalidInput"));
});

test("a number of 32 bits has the fewest digits", () => {
  const bits = new Uint32Array(1);
  const single = new Float32Array(bits.buffer);
  for (let at = 0; at < 20_000; at++) {
    bits[0] = (at * 2_654_435_761) >>> 0;
    const value = single[0] as number;
    const short = shortest(value);
    assert.ok(Object.is(Math.fround(short), value), `${value} became ${short}`);
    const digits = [6, 7, 8].find((each) => Object.is(Math.fround(Number(value.toPrecision(each))), value));
    const fewest = digits === undefined ? value : Number(value.toPrecision(digits));
    assert.ok(String(short).length <= String(fewest).length, `${short} is longer than ${fewest}`);
  }
});
