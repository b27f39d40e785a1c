import { Readable } from "node:stream";
import { type Schema, type Table, tableFromIPC } from "apache-arrow";
import { expect, test } from "vitest";
import { csvToArrow } from "./csv.ts";
import { jsonLinesToArrow } from "./json-lines.ts";

async function tableOf(pieces: AsyncIterable<Uint8Array>): Promise<Table> {
  return tableFromIPC(Buffer.concat(await Array.fromAsync(pieces)));
}

const csv = (text: string, schema?: Schema) => tableOf(csvToArrow(() => Readable.from([text]), { schema }));
const json = (text: string, schema?: Schema) =>
  tableOf(
    jsonLinesToArrow(async function* () {
      // Cut anywhere.
      for (let at = 0; at < text.length; at += 7) yield text.slice(at, at + 7);
    }, schema),
  );
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
      { i: null, n: 2.5, t: "2026-05-04", b: false, when: "2026-05-04", v: [3, 4], l: [1, 2], o: null },
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
    when: "Timestamp<MICROSECOND>",
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
  ["{", /line 1 is not JSON/],
  ['{"a":1}\n[1]', /line 2 is not an object/],
  ["", /without rows/],
])("lines %j are refused", async (text, message) => {
  await expect(json(text)).rejects.toThrow(message);
});

test.each([
  ['a\n1\n"x', /row \d+: Quoted field unterminated/],
  ["", /empty/],
  ["id,name\n1,Ann\n\n2,Smith, John\n", /row 4 has 3 cells, and the first line names 2/],
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
    /column "at", row 3: "today" is not/,
  );
  await expect(csv("id\n1\nx\n", schema)).rejects.toThrow(/column "id", row 3: Int64 cannot hold "x"/);
  await expect(json('{"id":1}\n{"id":"x"}\n', schema)).rejects.toThrow(/column "id", row 2: Int64/);
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
