import { Index } from "@lancedb/lancedb";
import type { Kind, Work } from "./beside.ts";
import { fruit, t } from "./fruit.ts";

/** Reads, restores and names versions. */
const timeTravel: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(3))).version());
  await both.same("add", async (db) => (await t(db)).add(fruit(2, 3)));
  const at =
    (version: number | string): Work =>
    async (db) => {
      const table = await t(db);
      await table.checkout(version);
      return [await table.version(), await table.toArrow()];
    };
  await both.same("version 1", at(1));
  await both.same("a missing version", at(99));
  await both.same("no tags", async (db) => (await (await t(db)).tags()).list());
  await both.same("create a tag", async (db) => (await (await t(db)).tags()).create("one", 1));
  await both.same("create it again", async (db) => (await (await t(db)).tags()).create("one", 1));
  await both.same("tags", async (db) =>
    Object.entries(await (await (await t(db)).tags()).list()).map(([name, { version }]) => [name, version]),
  );
  await both.same("checkout of a tag", at("one"));
  await both.same("move a tag", async (db) => (await (await t(db)).tags()).update("one", 2));
  await both.same("a tag that moved", at("one"));
  await both.same("a missing tag", at("nope"));
  await both.same("write in the past", async (db) => {
    const table = await t(db);
    await table.checkout(1);
    return table.add(fruit(1, 9));
  });
  await both.same("restore", async (db) => {
    const table = await t(db);
    await table.checkout(1);
    await table.restore();
    return [await table.version(), await table.countRows()];
  });
  await both.same("versions", async (db) =>
    (await (await t(db)).listVersions()).map(({ version }) => version),
  );
  await both.same("metadata of versions", async (db) =>
    (await (await t(db)).listVersions()).map(({ metadata }) => Object.keys(metadata).sort()),
  );
};

/** Writes beside the main branch. */
const branches: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(3))).version());
  await both.same("create", async (db) => {
    const branch = await (await (await t(db)).branches()).create("trial");
    await branch.add(fruit(2, 10));
    await branch.addColumns([{ name: "twice", valueSql: "id * 2" }]);
    return [branch.currentBranch(), await branch.toArrow(), await (await t(db)).countRows()];
  });
  await both.same("list", async (db) => Object.keys(await (await (await t(db)).branches()).list()));
  await both.same("checkout", async (db) =>
    (await (await (await t(db)).branches()).checkout("trial")).countRows(),
  );
  await both.same("checkout of a missing branch", async (db) =>
    (await (await t(db)).branches()).checkout("nope"),
  );
  await both.same("delete", async (db) => (await (await t(db)).branches()).delete("trial"));
  await both.same("delete it again", async (db) => (await (await t(db)).branches()).delete("trial"));
};

/** Adds, alters, computes and drops columns. */
const schemaChanges: Kind = async (both) => {
  const changed =
    (change: Work): Work =>
    async (db) => [await change(db), await (await t(db)).schema()];
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(3))).version());
  await both.same(
    "addColumns",
    changed(async (db) => (await t(db)).addColumns([{ name: "twice", valueSql: "id * 2" }])),
  );
  await both.same(
    "addColumns of nulls",
    changed(async (db) => (await t(db)).addColumns([{ name: "score", valueSql: "cast(null as double)" }])),
  );
  await both.same("a column that exists", async (db) =>
    (await t(db)).addColumns([{ name: "twice", valueSql: "1" }]),
  );
  await both.same("an expression that does not parse", async (db) =>
    (await t(db)).addColumns([{ name: "bad", valueSql: "id +" }]),
  );
  await both.same(
    "rename",
    changed(async (db) => (await t(db)).alterColumns([{ path: "score", rename: "points" }])),
  );
  await both.same(
    "cast",
    changed(async (db) => (await t(db)).alterColumns([{ path: "twice", dataType: "int32" }])),
  );
  await both.same("alter a missing column", async (db) =>
    (await t(db)).alterColumns([{ path: "nope", rename: "x" }]),
  );
  await both.same(
    "metadata",
    changed(async (db) =>
      (await t(db)).updateFieldMetadata([{ path: "text", metadata: { language: "en" } }]),
    ),
  );
  await both.same(
    "dropColumns",
    changed(async (db) => (await t(db)).dropColumns(["points"])),
  );
  await both.same("drop a missing column", async (db) => (await t(db)).dropColumns(["nope"]));
  await both.same("computed", async (db) => {
    const table = await t(db);
    await table.addColumns({ computed: [{ name: "thrice", valueSql: "id * 3" }] });
    await (await table.refreshColumnAsync("thrice")).wait();
    return table.query().select(["id"]).where("thrice = 6").toArray();
  });
};

const CONFIGS: Readonly<Record<string, readonly [column: string, config: () => Index]>> = {
  btree: ["id", Index.btree],
  bitmap: ["text", Index.bitmap],
  fm: ["text", Index.fm],
  fts: ["text", () => Index.fts({ stem: false })],
  "n-grams": ["text", () => Index.fts({ baseTokenizer: "ngram", ngramMinLength: 2 })],
  ivfFlat: ["vector", () => Index.ivfFlat({ numPartitions: 2 })],
  ivfPq: ["vector", () => Index.ivfPq({ numPartitions: 2, numSubVectors: 2 })],
  ivfRq: ["vector", () => Index.ivfRq({ numPartitions: 2 })],
  hnswPq: ["vector", () => Index.hnswPq({ numPartitions: 1, numSubVectors: 2 })],
  hnswSq: ["vector", () => Index.hnswSq({ numPartitions: 1 })],
};

/** Builds indices of every type, and finds rows by them. */
const indices: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(400, 0, 8))).version());
  const listed: Work = async (db) =>
    (await (await t(db)).listIndices()).map(({ name, indexType, columns }) => [name, indexType, columns]);
  for (const [name, [column, config]] of Object.entries(CONFIGS)) {
    await both.same(name, async (db) => {
      await (await t(db)).createIndex(column, { config: config(), name, waitTimeoutSeconds: 60 });
      const stats = await (await t(db)).indexStats(name);
      return [await listed(db), stats?.indexType, stats?.numIndexedRows, stats?.numUnindexedRows];
    });
    await both.same(`${name}: search`, async (db) =>
      column === "vector"
        ? (await t(db))
            .vectorSearch([7, 0, 1, 2, 3, 4, 5, 6])
            .nprobes(2)
            .refineFactor(20)
            .limit(3)
            .select(["id"])
            .toArrow()
        : (await t(db)).query().where("id = 7 OR text = 'red pear'").select(["id"]).toArrow(),
    );
    await both.same(`${name}: dropIndex`, async (db) => [
      await (await t(db)).dropIndex(name),
      await listed(db),
    ]);
  }
  await both.same("createIndexAsync", async (db) => [
    await (await (await t(db)).createIndexAsync("id", { config: Index.btree() })).wait(),
    await listed(db),
  ]);
  await both.same("again without replacing it", async (db) =>
    (await t(db)).createIndex("id", { config: Index.btree(), replace: false }),
  );
  await both.same("a missing column", async (db) => (await t(db)).createIndex("nope"));
  await both.same("a scalar index on vectors", async (db) =>
    (await t(db)).createIndex("vector", { config: Index.btree() }),
  );
  await both.same("drop a missing index", async (db) => (await t(db)).dropIndex("nope"));
  await both.same("statistics of a missing index", async (db) => (await t(db)).indexStats("nope"));
};

export const TABLES: Readonly<Record<string, Kind>> = {
  "time travel": timeTravel,
  branches,
  "schema changes": schemaChanges,
  indices,
};
