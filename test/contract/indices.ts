import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "vitest";
import { people, personStream, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { checkPaging, type World } from "./world.ts";

/** Ids of jobs: a UUID, and the table of a foreign catalog. */
const JOB_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.[\w-]+)?$/;

/** Parameters of a vector index that is quick to build. */
const SMALL = { numPartitions: 2, sampleRate: 16, maxIterations: 3 };

/** Indices: building, listing, statistics and removal. */
export function indexTests(world: World): void {
  /** Creates a table of 1,000 people with a column `wide` of vectors of 16 components that are not on a line. */
  async function large(): Promise<string[]> {
    const id = await world.table(people(1000));
    const parts = Array.from({ length: 16 }, (_, i) => `cast(id * ${7919 + 1000 * i} % 1009 as float)`);
    const expression = `arrow_cast(make_array(${parts.join(", ")}), 'FixedSizeList(16, Float32)')`;
    await world.client.alterTableAddColumns({ id, newColumns: [{ name: "wide", expression }] });
    return id;
  }
  const list = async (id: string[], options = {}) =>
    (await world.client.listTableIndices({ id, ...options })).indexes;
  const names = async (id: string[], options = {}) =>
    (await list(id, options)).map(({ indexName }) => indexName);
  const stats = (id: string[], indexName: string, options = {}) =>
    world.client.describeTableIndexStats({ id, indexName, ...options });

  describe("indices", () => {
    test("of each scalar kind are built, under the names that clients use", async () => {
      const id = await large();
      await world.client.alterTableAddColumns({
        id,
        newColumns: [
          { name: "kind", expression: "concat('k', cast(id % 3 as string))" },
          { name: "tags", expression: "make_array(name, 'all')" },
        ],
      });
      const requests: readonly (readonly [type: string, column: string, name: string])[] = [
        ["BTREE", "id", "BTREE"],
        ["scalar", "name", "BTREE"],
        ["Bitmap", "kind", "BITMAP"],
        ["label_list", "tags", "LABEL_LIST"],
        ["LabelList", "tags", "LABEL_LIST"],
        ["fts", "name", "FTS"],
        ["INVERTED", "kind", "FTS"],
        ["fm", "name", "FM"],
      ];
      for (const [i, [indexType, column]] of requests.entries()) {
        const request = { id, indexType, column, name: `i${i}` };
        await (i % 2 === 0
          ? world.client.createTableIndex(request)
          : world.client.createTableScalarIndex(request));
      }
      const indexes = await list(id);
      assert.deepEqual(
        indexes.map(({ indexName, columns, indexType, status }) => [indexName, columns, indexType, status]),
        requests.map(([, column, type], i) => [`i${i}`, [column], type, "SUCCEEDED"]),
      );
      for (const index of indexes) {
        assert.match(index.indexUuid, /^[0-9a-f-]{36}$/);
        assert.match(index.typeUrl ?? "", /IndexDetails$/);
        assert.deepEqual([index.numIndexedRows, index.numUnindexedRows, index.numSegments], [1000n, 0n, 1]);
        assert.ok((index.sizeBytes ?? 0n) > 0n);
        assert.ok(Date.parse(index.createdAt ?? "") > 0);
        assert.equal(typeof index.indexVersion, "number");
        JSON.parse(index.indexDetails ?? "");
      }
      assert.equal((await world.client.countTableRows({ id, predicate: "id = 77" })).count, 1n);
    });

    test("of each vector kind are built with their parameters and found by searches", async () => {
      const id = await large();
      const requests: readonly (readonly [type: string, name: string, parameters?: object])[] = [
        ["IVF_FLAT", "IVF_FLAT", { distanceType: "COSINE" }],
        ["vector", "IVF_PQ", { numSubVectors: 2, numBits: 8, distanceType: "l2" }],
        ["ivf_pq", "IVF_PQ", { numSubVectors: 2, numBits: 4, distanceType: "dot" }],
        ["IvfRq", "IVF_RQ", { numBits: 3 }],
        ["IVF_HNSW_PQ", "IVF_HNSW_PQ", { numSubVectors: 2, m: 8, efConstruction: 20 }],
        [
          "ivf-hnsw-sq",
          "IVF_HNSW_SQ",
          { m: 8, efConstruction: 20, numPartitions: undefined, targetPartitionSize: 300 },
        ],
      ];
      for (const [i, [indexType, , parameters]] of requests.entries()) {
        const name = `v${i}`;
        await world.client.createTableIndex({ id, column: "wide", indexType, name, ...SMALL, ...parameters });
      }
      assert.deepEqual(
        (await list(id)).map(({ indexType }) => indexType),
        requests.map(([, type]) => type),
      );
      assert.equal((await stats(id, "v0")).distanceType, "cosine");
      assert.equal((await stats(id, "v2")).distanceType, "dot");
      const { bytes } = await world.client.queryTable({
        id,
        vector: { singleVector: new Array<number>(16).fill(1) },
        vectorColumn: "wide",
        k: 1n,
        nprobes: 10,
        distanceType: "cosine",
      });
      assert.equal(rowsOf(bytes).length, 1);
    });

    test("have a default name, and a name that is taken is TableIndexAlreadyExists", async () => {
      const id = await world.table();
      await world.client.createTableIndex({ id, column: "id", indexType: "BTREE" });
      assert.deepEqual(await names(id), ["id_idx"]);
      const again = { id, column: "id", indexType: "BITMAP" };
      await refused("TableIndexAlreadyExists", world.client.createTableIndex(again));
      await refused(
        "TableIndexAlreadyExists",
        world.client.createTableScalarIndex({ ...again, column: "name", name: "id_idx" }),
      );
      const both = ["a", "a"].map((name) => world.client.createTableIndex({ ...again, name }));
      const outcomes = await Promise.allSettled(both);
      assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
      assert.deepEqual(await names(id), ["a", "id_idx"]);
    });

    test("of columns with unusual names and of nested columns are built", async () => {
      const id = await world.table();
      const newColumns = [
        { name: "odd name", expression: "id" },
        { name: "s", expression: "named_struct('x', id)" },
      ];
      await world.client.alterTableAddColumns({ id, newColumns });
      await world.client.createTableIndex({ id, column: "`odd name`", indexType: "BTREE" });
      await world.client.createTableIndex({ id, column: "s.x", indexType: "BTREE" });
      assert.deepEqual(await names(id), ["odd name_idx", "s.x_idx"]);
      assert.equal((await stats(id, "odd name_idx")).numIndexedRows, 5n);
    });

    test("of full text take all options", async () => {
      const id = await world.table();
      const options = {
        withPosition: true,
        baseTokenizer: "ngram",
        language: "english",
        maxTokenLength: 20,
        lowerCase: false,
        stem: false,
        removeStopWords: true,
        asciiFolding: false,
        minNgramLength: 2,
        maxNgramLength: 4,
        prefixOnly: true,
        customStopWords: ["p1"],
        blockSize: 256,
      };
      await world.client.createTableIndex({ id, column: "name", indexType: "FTS", ...options });
      const details = JSON.parse((await list(id))[0]?.indexDetails ?? "");
      assert.deepEqual(
        [details.with_position, details.base_tokenizer, details.language, details.max_token_length],
        [true, "ngram", "English", 20],
      );
      assert.deepEqual(
        [details.lower_case, details.stem, details.remove_stop_words, details.ascii_folding],
        [false, false, true, false],
      );
      assert.deepEqual(
        [details.min_ngram_length, details.max_ngram_length, details.prefix_only, details.custom_stop_words],
        [2, 4, true, ["p1"]],
      );
    });

    test("that cannot be built are refused with the reason", async () => {
      const id = await world.table(people(300));
      const build = (request: object) =>
        world.client.createTableIndex({ id, column: "vector", indexType: "IVF_PQ", ...request });
      for (const indexType of ["rtree", "IVF_SQ", "IVF_HNSW_FLAT"]) {
        const error = await refused("Unsupported", build({ indexType }));
        assert.match(error.message, new RegExp(indexType));
      }
      for (const request of [
        { indexType: "nonsense" },
        { indexType: "" },
        { indexType: "BTREE" },
        { column: "id" },
        { distanceType: "nonsense" },
        { distanceType: "hamming" },
        { numPartitions: 0 },
        { numPartitions: 1_000_000 },
        { numSubVectors: 3 },
        { numBits: 5 },
        { sampleRate: -1 },
        { maxIterations: 0 },
        { targetPartitionSize: 0 },
        { indexType: "IVF_HNSW_SQ", m: 100_000 },
        { indexType: "IVF_HNSW_SQ", efConstruction: 1_000_000_000 },
        { indexType: "FTS", column: "name", language: "Klingon" },
        { indexType: "FTS", column: "name", baseTokenizer: "nonsense" },
        { indexType: "FTS", column: "name", blockSize: 7 },
        { indexType: "FTS", column: "id" },
        { indexType: "LABEL_LIST", column: "id" },
        { indexType: "BTREE", column: "id", name: "__lance_x" },
      ]) {
        await refused("InvalidInput", build(request));
      }
      await refused("TableColumnNotFound", build({ column: "nothing" }));
      await refused("InvalidInput", build({ column: "" }));
      for (const indexType of ["VECTOR", "IVF_FLAT", "ivf_hnsw_sq"]) {
        await refused(
          "InvalidInput",
          world.client.createTableScalarIndex({ id, column: "vector", indexType }),
        );
      }
      await refused(
        "TableNotFound",
        world.client.createTableIndex({ id: await world.declared(), column: "id", indexType: "BTREE" }),
      );
      assert.deepEqual(await names(id), []);
    });

    test("report their numbers of rows", async () => {
      const id = await world.table();
      await world.client.createTableIndex({ id, column: "id", indexType: "BTREE" });
      const { version = 0n } = await world.client.insertIntoTable({ id }, personStream(people(3, 5)));
      const figures = await stats(id, "id_idx");
      assert.deepEqual(
        [figures.numIndexedRows, figures.numUnindexedRows, figures.indexType],
        [5n, 3n, "BTREE"],
      );
      assert.deepEqual([figures.numIndices, figures.distanceType], [1, undefined]);
      const older = await stats(id, "id_idx", { version: version - 1n });
      assert.equal(older.numUnindexedRows, 0n);
      await refused("TableIndexNotFound", stats(id, "id_idx", { version: 1n }));
      await refused("TableIndexNotFound", stats(id, "nothing"));
      await refused("TableVersionNotFound", stats(id, "id_idx", { version: 99n }));
      assert.deepEqual(await names(id, { version: 1n }), []);
    });

    test("are listed page by page, in the order of their names", async () => {
      const id = await world.table();
      const wanted = ["a", "b", "b b", "c", "ü"];
      for (const name of [...wanted].reverse()) {
        await world.client.createTableIndex({ id, column: "id", indexType: "BTREE", name });
      }
      assert.deepEqual(await names(id), wanted);
      await checkPaging(wanted, async (options) => {
        const { indexes, pageToken } = await world.client.listTableIndices({ id, ...options });
        return { names: indexes.map(({ indexName }) => indexName), pageToken };
      });
    });

    test("are dropped", async () => {
      const id = await world.table();
      await world.client.createTableIndex({ id, column: "id", indexType: "BTREE" });
      await world.client.dropTableIndex({ id, indexName: "id_idx" });
      assert.deepEqual(await names(id), []);
      await refused("TableIndexNotFound", world.client.dropTableIndex({ id, indexName: "id_idx" }));
      await refused("TableIndexNotFound", world.client.dropTableIndex({ id, indexName: "nothing" }));
    });

    test("of a branch belong to it alone", async () => {
      const id = await world.table();
      await world.client.createTableBranch({ id, name: "b" });
      const branch = "b";
      await world.client.createTableIndex({ id, branch, column: "id", indexType: "BTREE" });
      assert.deepEqual([await names(id, { branch }), await names(id)], [["id_idx"], []]);
      assert.equal((await stats(id, "id_idx", { branch })).numIndexedRows, 5n);
      await world.client.dropTableIndex({ id, indexName: "id_idx", branch });
      assert.deepEqual(await names(id, { branch }), []);
      const missing = { id, branch: "missing" };
      await refused(
        "TableBranchNotFound",
        world.client.createTableIndex({ ...missing, column: "id", indexType: "BTREE" }),
      );
      await refused("TableBranchNotFound", world.client.listTableIndices(missing));
    });

    test("are built after an early answer where the client prefers one, and report their progress", async () => {
      const id = await large();
      const context = { "header.prefer": "respond-async" };
      const request = { id, context, column: "wide", indexType: "IVF_HNSW_SQ", name: "late", ...SMALL };
      const answer = await world.client.createTableIndex(request);
      assert.match(answer.context["header.x-lance-job-id"] ?? "", JOB_ID);
      assert.equal(answer.context["header.preference-applied"], "respond-async");
      await refused("TableIndexAlreadyExists", world.client.createTableIndex(request));
      for (;;) {
        const { numIndexedRows, numUnindexedRows, indexType } = await stats(id, "late");
        assert.equal(indexType, "IVF_HNSW_SQ");
        assert.equal((numIndexedRows ?? 0n) + (numUnindexedRows ?? 0n), 1000n);
        if (numUnindexedRows === 0n) break;
        await sleep(10);
      }
      assert.deepEqual(await names(id), ["late"]);
      await refused("TableColumnNotFound", world.client.createTableIndex({ ...request, column: "nothing" }));
    });

    test("are built by a job that the answer waits for, as long as the client prefers to wait", async () => {
      const id = await world.table();
      const context = { "header.prefer": "respond-async, wait=120" };
      const request = { id, context, column: "id", indexType: "BTREE" };
      const answer = await world.client.createTableIndex(request);
      assert.match(answer.jobId ?? "", JOB_ID);
      assert.equal(answer.context["header.x-lance-job-id"], answer.jobId);
      assert.deepEqual(await names(id), ["id_idx"]);
      const tooFew = { id, context, column: "vector", indexType: "IVF_PQ", name: "late" };
      await refused("InvalidInput", world.client.createTableIndex(tooFew));
    });

    test("of a kind without a parameter are refused with it, so that no parameter is without effect", async () => {
      const id = await world.table();
      const others = [
        { column: "id", indexType: "BTREE", withPosition: true },
        { column: "id", indexType: "BTREE", distanceType: "l2" },
        { column: "name", indexType: "FTS", numPartitions: 2 },
        { column: "vector", indexType: "IVF_HNSW_PQ", numBits: 4 },
        { column: "id", indexType: "ZONEMAP", numberOfItems: 100 },
      ];
      for (const other of others)
        assert.match(
          (await refused("InvalidInput", world.client.createTableIndex({ id, ...other }))).message,
          /has no parameter/,
        );
      await world.client.createTableIndex({ id, column: "id", indexType: "BTREE", withPosition: false });
      assert.deepEqual(await names(id), ["id_idx"]);
    });

    test("of lists of texts are refused with elements as documents", async () => {
      const request = { id: await world.table(), column: "name", indexType: "FTS" };
      const elements = { ...request, documentGranularity: "list_element" };
      await refused("Unsupported", world.client.createTableIndex(elements));
      await world.client.createTableIndex({ ...request, documentGranularity: "row" });
    });

    test("of source code are refused where an option says more than its default", async () => {
      const id = await world.table();
      const request = { id, column: "name", indexType: "FTS" };
      const defaults = { splitIdentifiers: false, splitOnNumerics: false, preserveOriginal: false };
      for (const option of [{ lanceTokenizer: "code" }, { splitIdentifiers: true }, { indexOperators: true }])
        await refused("Unsupported", world.client.createTableIndex({ ...request, ...option }));
      await world.client.createTableIndex({ ...request, ...defaults, indexOperators: false });
      assert.deepEqual(await names(id), ["name_idx"]);
    });
  });
}
