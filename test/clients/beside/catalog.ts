import { blob, type Connection, permutationBuilder } from "@lancedb/lancedb";
import { Field, Int64, Schema } from "apache-arrow";
import type { Kind } from "./beside.ts";
import { fruit, idsOf, t } from "./fruit.ts";

/** Lists, renames and drops tables, in namespaces, too. */
const catalog: Kind = async (both) => {
  await both.same("create", async (db) => {
    for (const name of ["b", "a", "c"]) await db.createTable(name, fruit(1));
    return db.tableNames();
  });
  await both.same("a page", (db) => db.tableNames({ limit: 2 }));
  await both.same("the next page", (db) => db.tableNames({ startAfter: "a", limit: 2 }));
  await both.same("listTables", async (db) => (await db.listTables()).tables);
  await both.same("createEmptyTable", async (db) =>
    (await db.createEmptyTable("e", fruit(0).schema)).schema(),
  );
  await both.same(
    "createNamespace",
    async (db) => (await db.createNamespace(["team"])) && db.listNamespaces(),
  );
  await both.same("create it again", (db) => db.createNamespace(["team"]));
  await both.same("a table inside", async (db) => (await db.createTable("t", fruit(3), ["team"])).toArrow());
  await both.same("tables inside", (db) => db.tableNames(["team"]));
  await both.same("drop a full namespace", (db) => db.dropNamespace(["team"]));
  await both.same("drop the table", (db) => db.dropTable("t", ["team"]));
  await both.same("dropNamespace", async (db) => (await db.dropNamespace(["team"])) && db.listNamespaces());
  await both.same("drop a missing namespace", (db) => db.dropNamespace(["nope"]));
  await both.same("renameTable", (db) => db.renameTable("a", "z"));
  await both.same("dropAllTables", async (db) => [await db.dropAllTables(), await db.tableNames()]);
};

/** Splits, shuffles and filters rows for a training. */
const permutations: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(40))).version());
  const built = async (db: Connection) => permutationBuilder(await t(db));
  const rows = async (table: Awaited<ReturnType<typeof t>>) =>
    (await table.query().toArray()).map(({ row_id }) => row_id);
  await both.same("splitSequential", async (db) =>
    rows(await (await built(db)).splitSequential({ counts: [10, 5] }).execute()),
  );
  await both.same("splitHash", async (db) =>
    rows(await (await built(db)).splitHash({ columns: ["text"], splitWeights: [1, 1] }).execute()),
  );
  await both.same("splitRandom", async (db) =>
    rows(await (await built(db)).splitRandom({ ratios: [0.3, 0.7], seed: 5 }).execute()),
  );
  await both.same("filter", async (db) => rows(await (await built(db)).filter("id > 30").execute()));
  await both.same("shuffle", async (db) => rows(await (await built(db)).shuffle({ seed: 3 }).execute()));
};

/** Copies versions of a table, and changes and drops what they were copied from. */
const clones: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(30))).version());
  await both.same("add", async (db) => (await t(db)).add(fruit(5, 30)));
  // The client of a gateway knows no addresses of tables, and the gateway takes their names.
  const place = (db: Connection, name = "t") => {
    const folder = /uri=([^,)]*)/.exec(db.display())?.[1];
    return db.display().includes("Remote") ? name : `${folder}/${name}.lance`;
  };
  await both.same("cloneTable", async (db) => {
    const copy = await db.cloneTable("copy", place(db));
    return [copy.name, await copy.version(), await copy.toArrow()];
  });
  await both.same("of a version", async (db) =>
    (await db.cloneTable("first", place(db), { sourceVersion: 1 })).countRows(),
  );
  await both.same("of a missing version", (db) => db.cloneTable("other", place(db), { sourceVersion: 99 }));
  await both.same("of a missing tag", (db) => db.cloneTable("other", place(db), { sourceTag: "nope" }));
  await both.same("of a missing table", (db) => db.cloneTable("other", place(db, "nope")));
  await both.same("by a name that is taken", (db) => db.cloneTable("copy", place(db)));
  await both.same("a deep one", async (db) =>
    (await db.cloneTable("deep", place(db), { isShallow: false })).countRows(),
  );
  await both.same("write to it", async (db) => {
    await (await db.openTable("copy")).delete("id < 30");
    return [await (await t(db)).countRows(), await (await db.openTable("copy")).countRows()];
  });
};

const LARGE = Buffer.alloc(9_000_000, "0123456789");

/** Keeps large values beside the rows. */
const blobs: Kind = async (both) => {
  const values = [Buffer.from("alpha"), null, Buffer.alloc(0), LARGE];
  const rows = values.map((video, id) => ({ id: BigInt(id), video }));
  const schema = new Schema([new Field("id", new Int64()), blob("video")]);
  await both.same("createTable", async (db) => (await db.createTable("t", rows, { schema })).blobColumns());
  const ids = async (db: Connection) =>
    (await (await t(db)).query().select(["id"]).withRowId().toArray()).map((row) => BigInt(row["_rowid"]));
  const files = async (db: Connection) => (await t(db)).fetchBlobFiles("video", await ids(db));
  await both.same("fetchBlobs", async (db) => (await t(db)).fetchBlobs("video", await ids(db)));
  await both.same("repeated", async (db) => {
    const [first, , , last] = (await ids(db)) as [bigint, bigint, bigint, bigint];
    return (await t(db)).fetchBlobs("video", [last, first, first]);
  });
  await both.same("sizes", async (db) => (await files(db)).map((file) => file?.size()));
  await both.same("a range", async (db) => (await files(db))[3]?.readRange(4_000_000n, 8_500_000n));
  await both.same("whole", async (db) => Promise.all((await files(db)).map((file) => file?.read())));
  await both.same("another column", async (db) => (await t(db)).fetchBlobs("id", await ids(db)));
  await both.same("a missing row", async (db) => (await t(db)).fetchBlobs("video", [77n]));
  await both.same("a range beyond the end", async (db) => (await files(db))[3]?.readRange(0n, 9_000_001n));
};

/** Waits for work that a server does by itself. */
const jobs: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(3))).version());
  await both.same("refreshColumnAsync", async (db) => {
    const table = await t(db);
    await table.addColumns({ computed: [{ name: "twice", valueSql: "id * 2" }] });
    const job = await table.refreshColumnAsync("twice");
    return [await job.wait(), await job.status(), idsOf(await table.query().where("twice > 2").toArray())];
  });
  await both.same("dropTableAsync", async (db) => [
    await (await db.dropTableAsync("t")).wait(),
    await db.tableNames(),
  ]);
  await both.same("open a missing job", async (db) => (await db.openJob("nope")).status());
};

export const CATALOG: Readonly<Record<string, Kind>> = {
  catalog,
  permutations,
  clones,
  blobs,
  jobs,
};
