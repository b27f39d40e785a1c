import {
  BooleanQuery,
  BoostQuery,
  type Connection,
  Index,
  MatchQuery,
  MultiMatchQuery,
  Occur,
  PhraseQuery,
  rerankers,
  type VectorQuery,
} from "@lancedb/lancedb";
import type { Kind } from "./beside.ts";
import { fruit, idsOf, t } from "./fruit.ts";

const withTexts: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(40))).countRows());
  await both.same("index", async (db) =>
    (await t(db)).createIndex("text", { config: Index.fts({ withPosition: true }) }),
  );
  await both.same("add unindexed", async (db) => (await t(db)).add(fruit(20, 40)));
};

/** Searches words, phrases and compound queries, with filters before and after them. */
const text: Kind = async (both) => {
  await withTexts(both);
  const queries = {
    words: "plum",
    match: new MatchQuery("plum", "text"),
    fuzzy: new MatchQuery("plim", "text", { fuzziness: 1 }),
    phrase: new PhraseQuery("red pear", "text"),
    "multi match": new MultiMatchQuery("plum", ["text"]),
    boost: new BoostQuery(new MatchQuery("plum", "text"), new MatchQuery("blue", "text"), {
      negativeBoost: 0.2,
    }),
    boolean: new BooleanQuery([
      [Occur.Must, new MatchQuery("red", "text")],
      [Occur.MustNot, new MatchQuery("apple", "text")],
    ]),
  };
  // Equal texts have equal scores, so only the rows and not their order are certain.
  const byId = (found: { id: bigint; _score: number }[]) =>
    found.map(({ id, _score }) => [Number(id), _score]).sort(([a = 0], [b = 0]) => a - b);
  for (const [name, query] of Object.entries(queries)) {
    await both.same(name, async (db) =>
      byId(await (await t(db)).query().fullTextSearch(query).limit(60).toArray()),
    );
    await both.same(`${name}, filtered`, async (db) =>
      byId(await (await t(db)).query().fullTextSearch(query).where("id > 20").limit(60).toArray()),
    );
  }
};

/** Searches vectors and texts at once. */
const hybrid: Kind = async (both) => {
  await withTexts(both);
  const search = async (db: Connection) =>
    (await t(db))
      .query()
      .fullTextSearch("quince")
      .nearestTo([20, 0])
      .limit(3)
      .rerank(await rerankers.RRFReranker.create());
  await both.same("RRFReranker", async (db) => (await search(db)).toArrow());
  await both.same("some columns", async (db) => (await search(db)).select(["id"]).toArrow());
  await both.same("with a filter", async (db) => (await search(db)).where("id > 10").toArrow());
};

/** Searches by vector with every option. */
const vectorOptions: Kind = async (both) => {
  await both.same("createTable", async (db) => (await db.createTable("t", fruit(600))).countRows());
  const config = () => Index.ivfPq({ numPartitions: 2, numSubVectors: 2 });
  await both.same("index", async (db) => (await t(db)).createIndex("vector", { config: config() }));
  await both.same("add unindexed", async (db) => (await t(db)).add(fruit(3, 600)));
  const options: Readonly<Record<string, (query: VectorQuery) => VectorQuery>> = {
    where: (q) => q.bypassVectorIndex().where("id < 500"),
    postfilter: (q) => q.bypassVectorIndex().where("id < 598").postfilter(),
    distanceType: (q) => q.bypassVectorIndex().distanceType("dot"),
    distanceRange: (q) => q.bypassVectorIndex().distanceRange(1, 5),
    bypassVectorIndex: (q) => q.bypassVectorIndex(),
    nprobes: (q) => q.nprobes(2).refineFactor(4),
    minimumNprobes: (q) => q.minimumNprobes(2).maximumNprobes(2).refineFactor(4),
    ef: (q) => q.ef(30).nprobes(2).refineFactor(4),
    fastSearch: (q) => q.fastSearch().nprobes(2).refineFactor(4),
    offset: (q) => q.bypassVectorIndex().offset(2),
    withRowId: (q) => q.bypassVectorIndex().withRowId(),
    column: (q) => q.bypassVectorIndex().column("vector"),
    addQueryVector: (q) => q.bypassVectorIndex().addQueryVector([3, 0]),
  };
  for (const [name, option] of Object.entries(options))
    await both.same(name, async (db) =>
      option((await t(db)).vectorSearch([598.2, 0]).select(["id"]).limit(4)).toArrow(),
    );
  await both.same("a vector of another length", async (db) => (await t(db)).vectorSearch([1]).toArrow());
  await both.same("a column without vectors", async (db) =>
    (await t(db)).vectorSearch([1]).column("id").toArrow(),
  );
  await both.same("explainPlan", async (db) =>
    /KNN/.test(await (await t(db)).vectorSearch([1, 0]).explainPlan()),
  );
};

/** Searches only the rows that indices have. */
const fastSearch: Kind = async (both) => {
  await withTexts(both);
  const config = () => Index.ivfFlat({ numPartitions: 1 });
  await both.same("vector index", async (db) => (await t(db)).createIndex("vector", { config: config() }));
  await both.same("add more", async (db) => (await t(db)).add(fruit(20, 60)));
  const ids = (rows: readonly { id: bigint }[]) => idsOf(rows).sort((a, b) => a - b);
  const words = async (db: Connection) =>
    (await t(db)).query().fullTextSearch(new MatchQuery("plum", "text")).fastSearch().limit(100);
  await both.same("words", async (db) => ids(await (await words(db)).toArray()));
  await both.same("words, filtered", async (db) => ids(await (await words(db)).where("id > 20").toArray()));
  const near = async (db: Connection) => (await t(db)).vectorSearch([78.2, 0]).fastSearch().limit(3);
  await both.same("vector", async (db) => ids(await (await near(db)).toArray()));
  await both.same("vector, filtered", async (db) =>
    ids(await (await near(db)).where("id < 58").postfilter().toArray()),
  );
};

/** Keeps several vectors in a row. */
const multivector: Kind = async (both) => {
  const { makeArrowTable } = await import("@lancedb/lancedb");
  const { Field, FixedSizeList, Float32, Int32, List, Schema } = await import("apache-arrow");
  const vector = new FixedSizeList(2, new Field("item", new Float32(), true));
  const schema = new Schema([
    new Field("id", new Int32(), true),
    new Field("vector", new List(new Field("item", vector, true)), true),
  ]);
  const rows = Array.from({ length: 40 }, (_, i) => ({
    id: i,
    vector: [
      [i, 1],
      [1, i],
    ],
  }));
  await both.same("createTable", async (db) =>
    (await db.createTable("t", makeArrowTable(rows, { schema }))).schema(),
  );
  const search = async (db: Connection) => (await t(db)).vectorSearch([3, 1]).distanceType("cosine").limit(3);
  await both.same("one vector", async (db) => (await search(db)).toArrow());
  await both.same("several vectors", async (db) => (await search(db)).addQueryVector([1, 4]).toArrow());
};

export const SEARCHES: Readonly<Record<string, Kind>> = {
  text,
  hybrid,
  "vector options": vectorOptions,
  "fast search": fastSearch,
  multivector,
};
