import {
  type DataType,
  Decimal,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float32,
  Int32,
  List,
  Map_,
  Schema,
  Struct,
  type Table,
  TimeMicrosecond,
  TimeSecond,
  TimestampNanosecond,
  TimestampSecond,
  tableFromIPC,
  Utf8,
} from "apache-arrow";
import { expect, test } from "vitest";
import { decimalText } from "../../arrow/rows/row-texts.ts";
import { columnsOfText, schemaOfText, type TextOptions, textToArrow } from "./text-to-arrow.ts";

async function read(format: TextOptions["format"], text: string, schema?: Schema): Promise<Table> {
  const bytes = Buffer.from(text);
  const open = async function* () {
    // Cut anywhere.
    for (let at = 0; at < bytes.length || at === 0; at += 7) yield bytes.subarray(at, at + 7);
  };
  const options = { format, isForTable: schema !== undefined };
  const pieces = textToArrow(open, schema ?? (await schemaOfText(open, options)), options);
  return tableFromIPC(Buffer.concat(await Array.fromAsync(pieces)));
}

const csv = (text: string, schema?: Schema) => read("csv", text, schema);
const json = (text: string, schema?: Schema) => read("jsonl", text, schema);
const plain = (table: Table) => table.toArray().map((row) => JSON.parse(JSON.stringify(row, digits)));
const digits = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
const typesOf = (table: Table) =>
  Object.fromEntries(table.schema.fields.map(({ name, type }) => [name, `${type}`]));

test("lines of JSON become a table of the types that all their values have", async () => {
  const table = await json(
    [
      {
        i: 1,
        n: 1,
        t: "a",
        b: true,
        when: "2026-05-04T00:00:00.123456Z",
        v: [1, 2],
        l: [1],
        o: { x: [1, 2] },
      },
      {
        i: null,
        n: 2.5,
        t: "2026-05-04",
        b: false,
        when: "2026-05-04T00:00:00+02:00",
        v: [3, 4],
        l: [1, 2],
        o: null,
      },
      { mixed: 1 },
      { mixed: { a: 1 } },
    ]
      .map((row) => JSON.stringify(row))
      .join("\n\n"),
  );
  expect(typesOf(table)).toEqual({
    i: "Int64",
    n: "Float64",
    t: "Utf8",
    b: "Bool",
    when: "Timestamp<MICROSECOND, UTC>",
    v: "FixedSizeList[2]<Float32>",
    l: "List<Int64>",
    o: "Struct<{x:List<Int64>}>",
    mixed: "Utf8",
  });
  const [first, second, third, fourth] = plain(table);
  expect(first).toMatchObject({ i: "1", t: "a", v: { 0: 1, 1: 2 }, o: { x: ["1", "2"] } });
  expect(second).toMatchObject({ i: null, n: 2.5, t: "2026-05-04", o: null });
  expect([third.mixed, fourth.mixed]).toEqual(["1", '{"a":1}']);
});

test("integers of JSON keep digits that numbers would round", async () => {
  const rows = plain(await json('{"i":9007199254740993}\n{"i":-9223372036854775808}'));
  expect(rows).toEqual([{ i: "9007199254740993" }, { i: "-9223372036854775808" }]);
});

test.each([
  ["{", /line 1, column 2: a member needs a name in quotes/],
  ['{"a":1}\n[1]', /line 2, column 1: this is not an object/],
  ["", /without rows/],
])("lines %j are refused", async (text, message) => {
  await expect(json(text)).rejects.toThrow(message);
});

test.each([
  ['a\n1\n"x', /line 3, column 1: the quote at the beginning of this cell is not closed/],
  ["", /empty/],
  ["id,name\n1,Ann\n\n2,Smith, John\n", /line 4, column 9: the row has 3 cells, and the first line names 2/],
])("CSV %j is refused", async (text, message) => {
  await expect(csv(text)).rejects.toThrow(message);
});

test("rows for a table take its types, and may leave columns out", async () => {
  const { schema } = await json(
    '{"id":1,"name":"x","at":"2026-05-04T00:00:00.123456Z","vector":[1,2],"tags":["a"],"more":1.5}',
  );
  const text = 'tags,id,at,vector,name\n"[""b""]",7,2026-05-04T01:00:00.000001Z,"[3,4]",007\n,,,,\n';
  const lines =
    '{"id":7,"name":"007","at":"2026-05-04T01:00:00.000001Z","vector":[3,4],"tags":["b"]}\n{"id":null}';
  for (const table of [await csv(text, schema), await json(lines, schema)]) {
    expect(typesOf(table)).toEqual(
      Object.fromEntries(Object.entries(typesOf({ schema } as Table)).filter(([name]) => name !== "more")),
    );
    expect(plain(table)[0]).toMatchObject({ id: "7", name: "007", tags: ["b"], vector: { 0: 3, 1: 4 } });
    expect(table.getChild("at")?.data[0]?.values[0]).toBe(BigInt(Date.UTC(2026, 4, 4, 1)) * 1000n + 1n);
    expect(plain(table)[1]?.name).toBe(null);
  }
  await expect(csv("id,other\n1,2\n", schema)).rejects.toThrow(/no column "other"; it has id, name/);
  await expect(csv("id,at\n1,2026-05-04\n2,today\n", schema)).rejects.toThrow(
    /column "at", line 3: "today" is not/,
  );
  await expect(csv("id\n1\nx\n", schema)).rejects.toThrow(/column "id", line 3: Int64 cannot hold "x"/);
  await expect(json('{"id":1}\n{"id":"x"}\n', schema)).rejects.toThrow(/column "id", line 2: Int64/);
});

test("cells that are empty may lie beyond the columns of CSV", async () => {
  expect(plain(await csv("id,name\n1,Ann,,\n2\n"))).toEqual([
    { id: "1", name: "Ann" },
    { id: "2", name: null },
  ]);
});

test.each(["id\n1\n\n3\n\n", "id\r\n1\r\n\r\n3\r\n\r\n"])(
  "an empty line of CSV with a single column is a row without a value (%j)",
  async (text) => {
    expect(plain(await csv(text))).toEqual([{ id: "1" }, { id: null }, { id: "3" }, { id: null }]);
  },
);

test("an empty line of CSV with several columns counts as nothing", async () => {
  expect((await csv("\na,b\n\n1,2\n\n")).numRows).toBe(1);
});

test("a table without rows keeps the columns of CSV", async () => {
  const table = await csv("a,b\n");
  expect([table.numRows, table.schema.names]).toEqual([0, ["a", "b"]]);
});

const columnOf = (type: DataType) => new Schema([new Field("x", type, true)]);
const vector = new FixedSizeList(2, new Field("item", new Float32(), true));
const counts = new Map_<Utf8, Int32>(
  new Field(
    "entries",
    new Struct<{ key: Utf8; value: Int32 }>([
      new Field("key", new Utf8(), false),
      new Field("value", new Int32(), true),
    ]),
    false,
  ),
);

test.each<[string, DataType, string, unknown]>([
  ["a vector with too many numbers", vector, "[1,2,3]", [1, 2, 3]],
  ["a vector with too few numbers", vector, "[1]", [1]],
  ["too few bytes", new FixedSizeBinary(4), "AQI=", "AQI="],
  ["a time beyond those of its unit", new TimestampNanosecond(), "9999-12-31", "9999-12-31"],
  ["a time of a finer unit", new TimestampSecond(), "1969-12-31T23:59:59.5", "1969-12-31T23:59:59.5"],
  ["a time of day of a finer unit", new TimeSecond(), "13:02:01.5", "13:02:01.5"],
  ["a decimal with too many digits", new Decimal(2, 4), "123.45", 123.45],
  ["an integer in a map that is too large", counts, '{"a":1099511627776}', { a: 2 ** 40 }],
])("a value that a column cannot hold is refused and not changed: %s", async (_, type, text, value) => {
  const message = /column "x", line \d: /;
  await expect(csv(`x\n${JSON.stringify(text).replaceAll('\\"', '""')}\n`, columnOf(type))).rejects.toThrow(
    message,
  );
  await expect(json(JSON.stringify({ x: value }), columnOf(type))).rejects.toThrow(message);
});

test("a guessed column of times refuses one beyond its unit, because it would become another time", async () => {
  const text = "x\n2026-05-04 00:00:00.1234567\n9999-12-31 23:59:59.9999999\n";
  await expect(csv(text)).rejects.toThrow(/column "x", line 3: Timestamp<NANOSECOND> cannot hold/);
});

test("times of day are read as they are written", async () => {
  for (const table of [
    await csv("x\n13:02:01.25\n", columnOf(new TimeMicrosecond())),
    await json('{"x":"13:02:01.25"}', columnOf(new TimeMicrosecond())),
  ])
    expect(table.getChild("x")?.get(0)).toBe(46_921_250_000n);
  expect((await csv("x\n13:02:01\n", columnOf(new TimeSecond()))).getChild("x")?.get(0)).toBe(46_921);
});

test("bytes of CSV that look like a number are read as base64", async () => {
  const table = await csv("x\n123456E2\n", columnOf(new FixedSizeBinary(6)));
  expect(Buffer.from(table.getChild("x")?.get(0)).toString("base64")).toBe("123456E2");
});

test("times inside of lists keep their digits", async () => {
  const text = '{"x":["2026-05-04T00:00:00.123456789"]}';
  const table = await json(text, columnOf(new List(new Field("item", new TimestampNanosecond(), true))));
  const expected = BigInt(Date.UTC(2026, 4, 4)) * 1_000_000n + 123_456_789n;
  expect(table.getChild("x")?.data[0]?.children[0]?.values[0]).toBe(expected);
});

test.each([
  ["12345678901234567890.12", 1234567890123456789012n],
  ["0.00", 0n],
  ["-1.5", -150n],
])("the decimal %s of JSON keeps its digits", async (text, units) => {
  const table = await json(`{"x":${text}}`, columnOf(new Decimal(2, 30)));
  const words: Uint32Array = table.getChild("x")?.get(0);
  const value = [...words].reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n);
  expect(BigInt.asIntN(128, value)).toBe(units);
});

test("a decimal of JSON may be smaller than numbers are without an exponent", async () => {
  const table = await json('{"x":0.0000001}', columnOf(new Decimal(7, 30)));
  expect(table.getChild("x")?.get(0)[0]).toBe(1);
});

test("numbers with more digits than numbers of 64 bits keep become decimals", async () => {
  const table = await json('{"x":0.12345678901234567890,"y":[1.00000000000000000001]}');
  expect(typesOf(table)).toEqual({ x: "Decimal[38e+19]", y: "List<Decimal[38e+20]>" });
  const [x, y] = ["x", "y"].map((name) => table.getChild(name)?.get(0));
  expect([decimalText(x, 19), decimalText(y.get(0), 20)]).toEqual([
    "0.1234567890123456789",
    "1.00000000000000000001",
  ]);
});

test("integers in a column of several kinds keep their digits as texts", async () => {
  const table = await json('{"x":1234567890123456789}\n{"x":"a"}');
  expect(plain(table)).toEqual([{ x: "1234567890123456789" }, { x: "a" }]);
});

test.each([
  ['"2026-05-04"', '"NaN"', '"1"'],
  ['"1"', '"inf"', '"2026-05-04T00:00:00Z"'],
  ['["2026-05-04","NaN"]', '["1"]', '["2026-05-04T00:00:00Z"]'],
  ['{"y":"2026-05-04"}', '{"y":"NaN"}', '{"y":"2026-05-04T00:00:00Z"}'],
  ['["inf"]', '["nan"]', '["-Infinity"]'],
])("texts %s, %s and %s of JSON stay as they are", async (...values) => {
  for (const order of [values, values.toReversed()]) {
    const rows = order.map((value) => `{"x":${value}}`);
    expect(plain(await json(rows.join("\n")))).toEqual(rows.map((row) => JSON.parse(row)));
  }
});

test("CSV has the separator of its line of names, whatever is in its cells", async () => {
  const texts: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    "id,text\nx,a|b|c\ny,d|e|f\n": { id: "x", text: "a|b|c" },
    "id\ttext\nx\ta,b\n": { id: "x", text: "a,b" },
    "id;text\nx;a,b,c\n": { id: "x", text: "a,b,c" },
    "id|text\nx|y\n": { id: "x", text: "y" },
    '"a;b","c|d"\nx;y,z\n': { "a;b": "x;y", "c|d": "z" },
    '"a;b"\nx;y\n': { "a;b": "x;y" },
    "text\na;b;c\n": { text: "a;b;c" },
  };
  for (const [text, row] of Object.entries(texts)) {
    expect((await csv(text)).get(0)?.toJSON(), text).toEqual(row);
    const schema = new Schema(Object.keys(row).map((name) => new Field(name, new Utf8(), true)));
    expect((await csv(text, schema)).get(0)?.toJSON(), text).toEqual(row);
  }
});

test("the columns of a text have names before their values have a type", async () => {
  const open = (text: string) =>
    async function* () {
      yield Buffer.from(text);
    };
  const times = "a,b\n2026-05-04T13:02:01Z,1\n2026-05-04T13:02:01,2\n";
  await expect(schemaOfText(open(times), { format: "csv" })).rejects.toThrow(/column "a", line 3/);
  expect(await columnsOfText(open(times), { format: "csv" })).toEqual(["a", "b"]);
  expect(await columnsOfText(open('{"a":1}\n{"b":2}\n'), { format: "jsonl" })).toEqual(["a", "b"]);
  expect(await columnsOfText(open(""), { format: "jsonl" })).toEqual([]);
});

test("objects without members are rows of nulls", async () => {
  const schema = new Schema([new Field("a", new Int32(), true)]);
  expect(plain(await json("{}\n{}\n", schema))).toEqual([{ a: null }, { a: null }]);
  expect(plain(await json('{}\n{"a":1}\n', schema))).toEqual([{ a: null }, { a: 1 }]);
});
