import assert from "node:assert/strict";
import {
  Binary,
  Decimal,
  Field,
  Float32,
  Float64,
  List,
  makeData,
  makeVector,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimeMicrosecond,
  TimestampNanosecond,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { test } from "vitest";
import { toJsonRows } from "../../arrow/rows/json-rows.ts";
import { toCsv } from "./csv-rows.ts";

/** Returns the texts of a table as lines of JSON and as CSV. */
async function texts(table: Table): Promise<[string, string]> {
  const answer = async function* () {
    yield tableToIPC(table, "stream");
  };
  const text = async (pieces: AsyncIterable<Uint8Array>) =>
    Buffer.concat(await Array.fromAsync(pieces)).toString();
  return [await text(toJsonRows(answer(), "lines")), await text(toCsv(answer()))];
}

test("values keep their digits in texts", async () => {
  const nanos = BigInt64Array.of(1_777_856_400_123_456_789n, -1n);
  const at = makeVector(makeData({ type: new TimestampNanosecond("UTC"), length: 2, data: nanos }));
  const [json] = await texts(
    new Table({
      at,
      time: vectorFromArray([1n, 3_600_000_000n], new TimeMicrosecond()),
      price: vectorFromArray(
        [Uint32Array.of(1205, 0, 0, 0), Uint32Array.of(0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff)],
        new Decimal(2, 10),
      ),
      big: vectorFromArray([9_007_199_254_740_993n, null]),
      real: vectorFromArray([0.1, Number.NaN], new Float32()),
    }),
  );
  assert.equal(
    json,
    '{"at":"2026-05-04T01:00:00.123456789Z","time":"00:00:00.000001","price":12.05,"big":9007199254740993,"real":0.1}\n' +
      '{"at":"1969-12-31T23:59:59.999999999Z","time":"01:00:00","price":-0.01,"big":null,"real":"NaN"}\n',
  );
});

test("texts, bytes, lists and structs are written so that they can be read again", async () => {
  const list = new List(new Field("item", new Float64(), true));
  const struct = new Struct<{ a: Utf8 }>([new Field("a", new Utf8(), true)]);
  const [json, csv] = await texts(
    new Table({
      text: vectorFromArray(['a "b", c\nd', "", null], new Utf8()),
      bytes: vectorFromArray([Uint8Array.of(255), null, Uint8Array.of()], new Binary()),
      list: vectorFromArray([[1, null], [], null], list),
      struct: vectorFromArray([{ a: "x" }, null, { a: null }], struct),
    }),
  );
  assert.equal(
    json,
    [
      '{"text":"a \\"b\\", c\\nd","bytes":"/w==","list":[1,null],"struct":{"a":"x"}}',
      '{"text":"","bytes":null,"list":[],"struct":null}',
      '{"text":null,"bytes":"","list":null,"struct":{"a":null}}\n',
    ].join("\n"),
  );
  assert.equal(
    csv,
    [
      "text,bytes,list,struct",
      '"a ""b"", c\nd",/w==,"[1,null]","{""a"":""x""}"',
      '"",,[],',
      ',"",,"{""a"":null}"\n',
    ].join("\n"),
  );
});

test("a result without rows has a line of names in CSV, and nothing in JSON", async () => {
  const schema = new Schema([new Field("a", new Utf8(), true)]);
  const none = makeData({
    type: new Struct(schema.fields),
    length: 0,
    children: [vectorFromArray([], new Utf8()).data[0] as never],
  });
  assert.deepEqual(await texts(new Table(schema)), ["", "a\n"]);
  assert.deepEqual(await texts(new Table([new RecordBatch(schema, none)])), ["", "a\n"]);
});

test("names in CSV are quoted where readers could take a part of them for a separator", async () => {
  const [, csv] = await texts(new Table({ "a;b": vectorFromArray(["x;y"], new Utf8()) }));
  assert.equal(csv, '"a;b"\nx;y\n');
});
