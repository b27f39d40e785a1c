import { makeArrowTable } from "@lancedb/lancedb";
import {
  Table as ArrowTable,
  Binary,
  Bool,
  DateMillisecond,
  Field,
  Float64,
  Int8,
  Int32,
  Int64,
  List,
  RecordBatchReader,
  Schema,
  Struct,
  TimestampMillisecond,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import type { Kind } from "./beside.ts";
import { fruit, idsOf, t } from "./fruit.ts";

/** Creates a table from objects, searches, filters and drops it. */
const quickStart: Kind = async (both) => {
  const rows = [
    { vector: [3.1, 4.1], item: "foo", price: 10 },
    { vector: [5.9, 26.5], item: "bar", price: 20 },
  ];
  await both.same("createTable", async (db) => {
    const table = await db.createTable("t", rows);
    return [table.name, await table.version(), await table.schema()];
  });
  await both.same("tableNames", (db) => db.tableNames());
  await both.same("add", async (db) => (await t(db)).add([{ vector: [1.3, 1.4], item: "fizz", price: 100 }]));
  await both.same("search", async (db) => (await t(db)).search([100, 100]).limit(2).toArrow());
  await both.same("filter", async (db) =>
    (await t(db)).search([1, 1]).where("price < 50").select(["item"]).toArrow(),
  );
  await both.same("scan", async (db) => (await t(db)).query().toArrow());
  await both.same("toArrow", async (db) => (await t(db)).toArrow());
  await both.same("countRows", async (db) => (await t(db)).countRows("price > 15"));
  await both.same("expressions", async (db) =>
    (await t(db)).query().select({ double: "price * 2", item: "upper(item)" }).toArrow(),
  );
  await both.same("stats", async (db) => (await t(db)).stats());
  await both.same("createTable again", (db) => db.createTable("t", rows));
  await both.same("createTable that exists", async (db) =>
    (await db.createTable("t", rows, { existOk: true })).countRows(),
  );
  await both.same("createTable over it", async (db) =>
    (await db.createTable("t", rows.slice(1), { mode: "overwrite" })).toArrow(),
  );
  await both.same("a name with a slash", (db) => db.createTable("a/b", rows));
  await both.same("a condition that does not parse", async (db) => (await t(db)).countRows("price >"));
  await both.same("a missing column", async (db) => (await t(db)).query().select(["nope"]).toArrow());
  await both.same("dropTable", async (db) => [await db.dropTable("t"), await db.tableNames()]);
  await both.same("drop it again", (db) => db.dropTable("t"));
  await both.same("openTable", (db) => t(db));
};

/** Updates, merges and deletes rows. */
const changes: Kind = async (both) => {
  const read = async (db: Parameters<typeof t>[0]) => (await (await t(db)).query().toArrow()).toArray();
  const merge = async (db: Parameters<typeof t>[0]) => (await t(db)).mergeInsert("id");
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(20))).countRows());
  await both.same("update", async (db) =>
    (await t(db)).update({ where: "id < 5", values: { text: "it's new", vector: [9, 9] } }),
  );
  await both.same("update by SQL", async (db) =>
    (await t(db)).update({ where: "id = 7", valuesSql: { text: "concat(text, '!')" } }),
  );
  await both.same("update of a missing column", async (db) => (await t(db)).update({ values: { nope: 1 } }));
  await both.same("upsert", async (db) =>
    (await merge(db)).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(fruit(4, 18)),
  );
  await both.same("upsert with a condition", async (db) =>
    (await merge(db)).whenMatchedUpdateAll({ where: "target.id > 4" }).execute(fruit(6)),
  );
  await both.same("insert if missing", async (db) =>
    (await merge(db)).whenNotMatchedInsertAll().execute(fruit(4, 20)),
  );
  await both.same("delete the others", async (db) =>
    (await merge(db)).whenNotMatchedBySourceDelete({ where: "id > 10" }).execute(fruit(12)),
  );
  await both.same("merge without a key", async (db) =>
    (await t(db)).mergeInsert("nope").whenMatchedUpdateAll().execute(fruit(2)),
  );
  await both.same("delete", async (db) => (await t(db)).delete("id in (1, 2)"));
  await both.same("delete by a missing column", async (db) => (await t(db)).delete("nope = 1"));
  await both.same("rows", read);
};

/** Writes rows in batches, and reads them by offset and id. */
const streams: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(25))).countRows());
  await both.same("add an Arrow table", async (db) => (await t(db)).add(fruit(5, 25)));
  await both.same("add a reader", async (db) => {
    const reader = RecordBatchReader.from(tableToIPC(fruit(3, 30)));
    return (await t(db)).add(new ArrowTable([...reader]));
  });
  await both.same("add in order", async (db) =>
    (await t(db)).add(makeArrowTable([{ id: 1n, text: "x", vector: [1, 1] }])),
  );
  await both.same("read batches", async (db) => {
    let rows = 0;
    for await (const batch of (await t(db)).query()) rows += batch.numRows;
    return rows;
  });
  await both.same("a part", async (db) => (await t(db)).query().limit(7).offset(20).toArrow());
  await both.same("offsets", async (db) => idsOf(await (await t(db)).takeOffsets([30, 0, 3]).toArray()));
  await both.same("row ids", async (db) => idsOf(await (await t(db)).takeRowIds([0, 12]).toArray()));
  await both.same("another schema", async (db) => (await t(db)).add([{ nope: 1 }]));
  await both.same("a vector of another length", async (db) =>
    (await t(db)).add([{ id: 1, text: "x", vector: [1] }]),
  );
};

/** Keeps columns of many types, and their metadata. */
const types: Kind = async (both) => {
  const point = new Struct([new Field("x", new Int32(), true), new Field("z", new Utf8(), true)]);
  const columns = {
    small: vectorFromArray([1, null], new Int8()),
    large: vectorFromArray([2n ** 60n, null], new Int64()),
    double: vectorFromArray([1.5, Number.NaN], new Float64()),
    flag: vectorFromArray([true, null], new Bool()),
    day: vectorFromArray([new Date("2024-02-29T00:00:00Z"), null], new DateMillisecond()),
    moment: vectorFromArray([1_700_000_000_000, null], new TimestampMillisecond()),
    bytes: vectorFromArray([Uint8Array.of(0, 255), null], new Binary()),
    words: vectorFromArray([["a", "b"], []], new List(new Field("item", new Utf8(), true))),
    point: vectorFromArray([{ x: 1, z: "deep" }, null], point),
    category: vectorFromArray(["red", "red"]),
  };
  const fields = Object.entries(columns).map(
    ([name, { type }]) => new Field(name, type, true, new Map([["unit", name]])),
  );
  const rows = new ArrowTable(new Schema(fields), columns);
  await both.same("createTable", async (db) => (await db.createTable("t", rows)).schema());
  await both.same("add", async (db) => (await t(db)).add(rows));
  await both.same("rows", async (db) => (await t(db)).query().toArrow());
  for (const condition of ["flag", "point.z = 'deep'", "array_has(words, 'a')", "large > 1", "bytes IS NULL"])
    await both.same(`where ${condition}`, async (db) =>
      (await t(db)).query().where(condition).select(["small"]).toArrow(),
    );
};

export const ROWS: Readonly<Record<string, Kind>> = { "quick start": quickStart, changes, streams, types };
