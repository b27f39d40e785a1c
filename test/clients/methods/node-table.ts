import { blob, Index } from "@lancedb/lancedb";
import { Field, Int64, Schema } from "apache-arrow";
import type { Call } from "./node-connection.ts";
import { idsOf, refresh } from "./node-connection.ts";
import { type Ground, rowsOf } from "./node-ground.ts";

const fieldsOf = async ({ t }: Ground) =>
  (await t.schema()).fields.map(({ name, type }) => `${name}: ${type}`);

/** Makes a call on a table with an index. */
const indexed =
  (call: Call, column = "id", config = Index.btree): Call =>
  async (c) => {
    await c.t.createIndex(column, { config: config() });
    await c.t.waitForIndex([`${column}_idx`], 60);
    return call(c);
  };

/** Makes a call on a table with a blob, and the id of its row. */
const withBlobs =
  (call: (clips: Ground["t"], ids: bigint[]) => unknown): Call =>
  async ({ db }) => {
    const schema = new Schema([new Field("id", new Int64()), blob("video")]);
    const rows = [{ id: 1n, video: Buffer.from("0123456789") }];
    const clips = await db.createTable("clips", rows, { schema });
    const found = await clips.query().select(["id"]).withRowId().toArray();
    return call(
      clips,
      found.map((row) => BigInt(row["_rowid"])),
    );
  };

const indicesOf = async ({ t }: Ground) =>
  (await t.listIndices()).map(({ name, columns }) => [name, ...columns]);

/** The calls of a table. */
export const TABLE: Readonly<Record<string, Call>> = {
  add: async (c) => {
    await c.t.add(rowsOf(4));
    return idsOf(c.t);
  },
  addColumns: async (c) => {
    await c.t.addColumns([{ name: "twice", valueSql: "id * 2" }]);
    return fieldsOf(c);
  },
  alterColumns: async (c) => {
    await c.t.alterColumns([{ path: "text", rename: "words" }]);
    return fieldsOf(c);
  },
  blobColumns: withBlobs((clips) => clips.blobColumns()),
  branches: async (c) => (await c.t.branches()).list(),
  checkout: async (c) => {
    await c.t.add(rowsOf(4));
    await c.t.checkout(1);
    return c.t.countRows();
  },
  checkoutLatest: async (c) => {
    await c.t.add(rowsOf(4));
    await c.t.checkout(1);
    await c.t.checkoutLatest();
    return c.t.countRows();
  },
  checkpointLsm: (c) => c.t.checkpointLsm(),
  close: (c) => c.t.close(),
  closeLsmWriters: (c) => c.t.closeLsmWriters(),
  compactLsm: (c) => c.t.compactLsm(),
  countRows: (c) => c.t.countRows("id > 1"),
  createIndex: indexed(indicesOf),
  createIndexAsync: async (c) => {
    await (await c.t.createIndexAsync("id", { config: Index.btree() })).wait();
    return indicesOf(c);
  },
  currentBranch: (c) => c.t.currentBranch(),
  delete: async (c) => {
    await c.t.delete("id = 2");
    return idsOf(c.t);
  },
  display: (c) => typeof c.t.display(),
  dropColumns: async (c) => {
    await c.t.dropColumns(["text"]);
    return fieldsOf(c);
  },
  dropIndex: indexed(async (c) => {
    await c.t.dropIndex("id_idx");
    return indicesOf(c);
  }),
  fetchBlobFiles: withBlobs(async (clips, ids) => {
    const [file] = await clips.fetchBlobFiles("video", ids);
    return [file?.size(), await file?.readRange(2n, 5n)];
  }),
  fetchBlobs: withBlobs((clips, ids) => clips.fetchBlobs("video", ids)),
  flushLsm: (c) => c.t.flushLsm(),
  getLsmStats: (c) => c.t.getLsmStats(),
  getLsmWriteSpec: (c) => c.t.getLsmWriteSpec(),
  indexStats: indexed(async (c) => (await c.t.indexStats("id_idx"))?.numIndexedRows),
  initialStorageOptions: (c) => c.t.initialStorageOptions(),
  isOpen: (c) => c.t.isOpen(),
  latestStorageOptions: (c) => c.t.latestStorageOptions(),
  listIndices: indexed(indicesOf),
  listVersions: async (c) => (await c.t.listVersions()).map(({ version }) => version),
  mergeInsert: async (c) => {
    const merge = c.t.mergeInsert("id").whenMatchedUpdateAll().whenNotMatchedInsertAll();
    const { numInsertedRows, numUpdatedRows } = await merge.execute(rowsOf(2, 9));
    return [numInsertedRows, numUpdatedRows];
  },
  migrateManifestPathsV2: (c) => (c.t as Migrated).migrateManifestPathsV2(),
  name: (c) => c.t.name,
  optimize: async (c) => {
    await c.t.add(rowsOf(4));
    await c.t.optimize();
    return c.t.countRows();
  },
  prewarmData: (c) => c.t.prewarmData(["id"]),
  prewarmIndex: indexed((c) => c.t.prewarmIndex("id_idx")),
  query: async (c) => (await c.t.query().where("id > 1").toArray()).map(({ id }) => Number(id)),
  refreshColumn: async (c) => {
    await c.t.addColumns({ computed: [{ name: "twice", valueSql: "id * 2" }] });
    return (await c.t.refreshColumn("twice")).rowsFilled;
  },
  refreshColumnAsync: async (c) => {
    await refresh(c);
    return c.t.countRows("twice = id * 2");
  },
  refreshMaterializedView: async (c) => {
    const view = await c.db.createMaterializedView("mv", "t");
    await c.t.add(rowsOf(4));
    return (await view.table().refreshMaterializedView()).mode;
  },
  restore: async (c) => {
    await c.t.add(rowsOf(4));
    await c.t.checkout(1);
    await c.t.restore();
    return c.t.countRows();
  },
  schema: fieldsOf,
  search: async (c) => (await c.t.search([1.2, 1]).limit(2).toArray()).map(({ id }) => Number(id)),
  setLsmWriteSpec: (c) => c.t.setLsmWriteSpec({ specType: "unsharded" }),
  setUnenforcedPrimaryKey: (c) => c.t.setUnenforcedPrimaryKey("key"),
  stats: async (c) => {
    const { numRows, numIndices, fragmentStats } = await c.t.stats();
    return [numRows, numIndices, fragmentStats.numFragments];
  },
  tags: async (c) => (await c.t.tags()).list(),
  takeOffsets: async (c) => (await c.t.takeOffsets([0, 2]).toArray()).map(({ id }) => Number(id)),
  takeRowIds: async (c) => (await c.t.takeRowIds([0, 2]).toArray()).map(({ id }) => Number(id)),
  toArrow: async (c) => (await c.t.toArrow()).numRows,
  tokenize: indexed((c) => c.t.tokenize("Red Apples", { column: "text" }), "text", Index.fts),
  unsetLsmWriteSpec: (c) => c.t.unsetLsmWriteSpec(),
  update: async (c) => {
    await c.t.update({ where: "id = 2", values: { text: "new" } });
    return (await c.t.query().toArray()).map(({ text }) => text).sort();
  },
  updateFieldMetadata: async (c) => {
    await c.t.updateFieldMetadata([{ path: "text", metadata: { language: "en" } }]);
    return (await c.t.schema()).fields.map(({ metadata }) => [...metadata]);
  },
  usesV2ManifestPaths: (c) => (c.t as Migrated).usesV2ManifestPaths(),
  vectorSearch: async (c) =>
    (await c.t.vectorSearch([1.2, 1]).limit(2).toArray()).map(({ id }) => Number(id)),
  version: (c) => c.t.version(),
  waitForIndex: indexed((c) => c.t.waitForIndex(["id_idx"], 60)),
};

/** Methods that the class has and its public type lacks. */
type Migrated = Ground["t"] & {
  migrateManifestPathsV2(): Promise<void>;
  usesV2ManifestPaths(): Promise<boolean>;
};
