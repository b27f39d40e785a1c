import assert from "node:assert/strict";
import {
  Field as ArrowField,
  Bool,
  type DataType,
  type Field,
  FixedSizeList,
  Float32,
  Int32,
  Int64,
  List,
  type RecordBatch,
  Schema,
  Struct,
  Table,
  tableFromArrays,
  Uint8,
  Utf8,
} from "apache-arrow";
import { afterAll, beforeAll, describe, it } from "vitest";
import {
  CreateTableMode,
  isAlreadyExists,
  isCancelled,
  isDeadlineExceeded,
  isInvalidInput,
  isNotFound,
  isUnsupported,
  LanceError,
  type Namespace,
} from "../../src/client/index.ts";
import { ALL_OPERATIONS } from "../support/operations.ts";

/** A connection to a fresh, empty catalog. */
export interface ClientFixture {
  readonly namespace: Namespace;
  /** Whether `@lancedb/lancedb` can be loaded. Default: true. */
  readonly opensTables?: boolean;
  close(): Promise<void>;
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const rows = (count: number, first = 0) =>
  Array.from({ length: count }, (_, i) => ({
    id: first + i,
    name: `p${first + i}`,
    vector: [first + i, 0],
  }));

/** Tests of the client that hold for every kind of connection. */
export function clientSuite(name: string, open: () => Promise<ClientFixture>): void {
  describe(`the client, connected by ${name}`, () => {
    let fixture: ClientFixture;
    let ns: Namespace;
    beforeAll(async () => {
      fixture = await open();
      ns = fixture.namespace;
      await ns.createNamespace({ id: ["base"] });
      await ns.createTable("people", rows(20), { namespacePath: ["base"] });
    });
    afterAll(() => fixture.close());
    const id = ["base", "people"];

    it("has every operation", () => {
      for (const operation of ALL_OPERATIONS) assert.equal(typeof ns[operation], "function", operation);
    });

    it("answers with typed messages, 64-bit integers exact", async () => {
      const { count } = await ns.countTableRows({ id, predicate: "id < 5" });
      assert.equal(count, 5n);
      const described = await ns.describeTable({ id, loadDetailedMetadata: true });
      assert.deepEqual(
        described.schema?.fields.map((field) => field.name),
        ["id", "name", "vector"],
      );
      const version: bigint | undefined = described.version;
      assert.equal(typeof version, "bigint");
    });

    it("takes enums by name and by number", async () => {
      const again = { id: ["base"], properties: { a: "b" } };
      await ns.createNamespace({ ...again, mode: "exist_ok" });
      await assert.rejects(ns.createNamespace({ ...again, mode: "create" }), isAlreadyExists);
      const request = { id: ["base", "people"], mode: CreateTableMode.EXIST_OK };
      await ns.createTable(request, rows(1));
      await assert.rejects(ns.createNamespace({ ...again, mode: "sometimes" }), (error) => {
        assert.ok(isInvalidInput(error));
        assert.match(error.message, /field "mode" must be one of/);
        return true;
      });
    });

    it("says what is wrong with a request before it is sent", async () => {
      const wrong = { id, nope: 1 } as object;
      await assert.rejects(ns.describeTable(wrong), /DescribeTableRequest has no field "nope"/);
      await assert.rejects(ns.countTableRows({ id, version: 1.5 }), /field "version" must be an integer/);
      await assert.rejects(ns.describeTable({ id: "people" } as never), /field "id" must be an array/);
    });

    it("throws one class of error, with the names and codes of the table", async () => {
      await assert.rejects(ns.describeTable({ id: ["base", "missing"] }), (error) => {
        assert.ok(error instanceof LanceError);
        assert.ok(isNotFound(error));
        assert.ok(!isAlreadyExists(error));
        const { code, status, kind } = error;
        assert.deepEqual({ code, status, kind }, { code: 4, status: 404, kind: "TableNotFound" });
        return true;
      });
      await assert.rejects(ns.listTables({ id: ["missing"] }), { kind: "NamespaceNotFound" });
      await assert.rejects(ns.queryTable({ id: ["base", "missing"] }).toArray(), { kind: "TableNotFound" });
      await assert.rejects(ns.createTable("people", rows(1), { namespacePath: ["base"] }), isAlreadyExists);
    });

    it("lists page by page, or all in one loop", async () => {
      await ns.createNamespace({ id: ["many"] });
      const names = Array.from({ length: 7 }, (_, index) => `t${index}`);
      for (const table of names) await ns.declareTable({ id: ["many", table] });
      const page = await ns.listTables({ id: ["many"], limit: 3, includeDeclared: true });
      assert.equal(page.tables.length, 3);
      const listing = ns.listTables({ id: ["many"], limit: 3, includeDeclared: true });
      assert.deepEqual(await collect(listing), names);
      assert.equal((await collect(listing.pages())).length, 3);
      await assert.rejects(collect(ns.listTables({ id: ["missing"] })), isNotFound);
    });

    it("lists maps as entries", async () => {
      await ns.createTableTag({ id, tag: "first", version: 1 });
      const tags = await collect(ns.listTableTags({ id }));
      assert.deepEqual(
        tags.map(([tag, { version }]) => [tag, version]),
        [["first", 1n]],
      );
      const versions = await collect(ns.listTableVersions({ id, limit: 1 }));
      assert.ok(versions.some(({ version }) => version === 1n));
    });

    it("queries batch by batch, and with the short forms of vectors and columns", async () => {
      let count = 0;
      for await (const batch of ns.queryTable({ id })) count += batch.numRows;
      assert.equal(count, 20);
      const found = await ns.queryTable({ id, vector: [3, 0], k: 2, columns: ["id"] }).toArray();
      assert.equal(found[0]?.["id"], 3);
      const text = await ns.queryTable({ id, filter: "id = 7", columns: ["name", "vector"] }).toArray();
      assert.deepEqual(text, [{ name: "p7", vector: [7, 0] }]);
      const table = await ns.queryTable({ id, filter: "id >= 18" }).toTable();
      assert.equal(table.numRows, 2);
    });

    it("ends a query that nobody reads to its end", async () => {
      for await (const bytes of ns.queryTable({ id }).bytes()) {
        assert.ok(bytes.length > 0);
        break;
      }
    });

    it("uploads tables, batches, bytes and objects", async () => {
      const table = tableFromArrays({ id: Int32Array.from([1, 2, 3]) });
      const into = (mode = "overwrite") => ({ id: ["base", "uploads"], mode });
      const count = async () => Number((await ns.countTableRows({ id: ["base", "uploads"] })).count);
      await ns.createTable(into(), table);
      assert.equal(await count(), 3);
      await ns.insertIntoTable(into("append"), table.batches);
      assert.equal(await count(), 6);
      async function* batches() {
        yield* table.batches;
        yield* table.batches;
      }
      await ns.insertIntoTable(into("append"), batches());
      assert.equal(await count(), 12);
      const bytes = await collect(ns.queryTable({ id: ["base", "uploads"] }).bytes());
      await ns.insertIntoTable(into("append"), new Blob(bytes as Uint8Array<ArrayBuffer>[]));
      assert.equal(await count(), 24);
      const field: Field = new ArrowField("id", new Int32(), true);
      await ns.createTable({ id: ["base", "empty"] }, new Table(new Schema([field])));
      assert.equal((await ns.countTableRows({ id: ["base", "empty"] })).count, 0n);
      await assert.rejects(ns.insertIntoTable(into("append"), 5 as never), isInvalidInput);
      await assert.rejects(ns.createTable("none", []), isInvalidInput);
    });

    it("fits objects to the schema of the table that they go into", async () => {
      const id = ["base", "fitted"];
      const item = <T extends DataType>(type: T) => new ArrowField("item", type, true);
      const types = {
        id: new Int64(),
        small: new Uint8(),
        score: new Float32(),
        flag: new Bool(),
        tags: new List(item(new Utf8())),
        vector: new FixedSizeList(2, item(new Float32())),
        place: new Struct([
          new ArrowField("name", new Utf8(), true),
          new ArrowField("zip", new Int32(), true),
        ]),
      };
      const fields = Object.entries(types).map(
        ([name, type]) => new ArrowField(name, type as DataType, true),
      );
      await ns.createTable({ id }, new Table(new Schema(fields)));
      const row = {
        small: 200,
        score: 1,
        flag: true,
        tags: ["a", "b"],
        vector: [1, 2],
        place: { name: "x", zip: 7 },
      };
      await ns.insertIntoTable({ id }, [
        { id: 1, ...row },
        { id: 2n, small: null, tags: [] },
      ]);
      await ns.insertIntoTable({ id }, [{ id: 4, ...row, flag: null }]);
      await ns.mergeInsertIntoTable({ id, on: ["id"], whenNotMatchedInsertAll: true }, [{ id: 3, ...row }]);
      const rows = await ns.queryTable({ id, vector: undefined }).toArray();
      const absent = { small: null, score: null, flag: null, tags: [], vector: null, place: null };
      const byId = rows.toSorted((a, b) => Number(a["id"]) - Number(b["id"]));
      assert.deepEqual(byId, [
        { id: 1n, ...row },
        { id: 2n, ...absent },
        { id: 3n, ...row },
        { id: 4n, ...row, flag: null },
      ]);
      for (const wrong of [
        { id: 1.5 },
        { small: 256 },
        { id: "1" },
        { tags: [1] },
        { place: { zip: 2 ** 40 } },
      ]) {
        await assert.rejects(ns.insertIntoTable({ id }, [wrong]), isInvalidInput, JSON.stringify(wrong));
      }
      await ns.createTable({ id: ["base", "guessed"] }, [{ tags: ["a"] }, { tags: ["b", "c"] }]);
      const guessed = await ns.queryTable({ id: ["base", "guessed"] }).toArray();
      assert.deepEqual(guessed, [{ tags: ["a"] }, { tags: ["b", "c"] }]);
    });

    it("hands on what the source of an upload throws", async () => {
      const [batch] = tableFromArrays({ id: Int32Array.from([1]) }).batches as [RecordBatch];
      async function* broken() {
        yield batch;
        throw new LanceError("InvalidInput", "the file ends in the middle");
      }
      await assert.rejects(ns.createTable("broken", broken()), /ends in the middle/);
      await assert.rejects(ns.describeTable({ id: ["broken"] }), isNotFound);
    });

    it("merges, updates and deletes", async () => {
      await ns.createTable("changing", rows(4), { namespacePath: ["base"] });
      const table = { id: ["base", "changing"] };
      const merge = { ...table, on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };
      const merged = await ns.mergeInsertIntoTable(merge, rows(4, 2));
      assert.deepEqual([merged.numUpdatedRows, merged.numInsertedRows], [2n, 2n]);
      const updates = [{ column: "name", expression: "'x'" }];
      assert.equal((await ns.updateTable({ ...table, predicate: "id = 0", updates })).updatedRows, 1n);
      await ns.deleteFromTable({ ...table, predicate: "id > 2" });
      assert.equal((await ns.countTableRows(table)).count, 3n);
    });

    it("renames, opens and drops by name and path", async () => {
      await ns.createTable("old", rows(2), { namespacePath: ["base"], properties: { k: "v" } });
      await ns.renameTable("old", "new", { namespacePath: ["base"] });
      await assert.rejects(ns.openTable("old", { namespacePath: ["base"] }), isNotFound);
      const opening = ns.openTable("new", { namespacePath: ["base"] });
      if (fixture.opensTables ?? true) assert.equal(await (await opening).countRows(), 2);
      else await assert.rejects(opening, isUnsupported);
      await ns.dropTable("new", { namespacePath: ["base"] });
      await assert.rejects(ns.tableExists({ id: ["base", "new"] }), isNotFound);
    });

    it("moves no table into the root by its path, where an empty namespace is the present one", async () => {
      await ns.createTable("stays", rows(1), { namespacePath: ["base"] });
      const moving = ns.renameTable("stays", "moved", { namespacePath: ["base"], newNamespacePath: [] });
      await assert.rejects(moving, isInvalidInput);
      await ns.renameTable("stays", "kept", { namespacePath: ["base"], newNamespacePath: ["base"] });
      await ns.dropTable("kept", { namespacePath: ["base"] });
    });

    it("accepts one of several actions and operations, by its case", async () => {
      await ns.createTable({ id: ["acted"] }, rows(1));
      const transaction = { id: ["acted", "1"] };
      const setting = { key: "note", value: "checked", mode: "fail" };
      const actions = [{ action: { case: "setPropertyAction", value: setting } as const }];
      const altered = await ns.alterTransaction({ ...transaction, actions });
      assert.equal(altered.properties["note"], "checked");
      const operation = { case: "deregisterTable", value: { id: ["acted"] } } as const;
      const { results } = await ns.batchCommitTables({ operations: [{ operation }] });
      assert.equal(results[0]?.result.case, "deregisterTable");
      await assert.rejects(ns.tableExists({ id: ["acted"] }), isNotFound);
      const wrong = [
        { setPropertyAction: setting },
        { action: { case: "noAction", value: {} } },
        { action: { case: "setPropertyAction", value: { ...setting, mode: "never" } } },
        { action: { case: "setPropertyAction", value: setting, other: 1 } },
      ] as never[];
      for (const action of wrong)
        await assert.rejects(ns.alterTransaction({ ...transaction, actions: [action] }), isInvalidInput);
    });

    it("can be cancelled, and given a time", async () => {
      const gone = AbortSignal.abort();
      await assert.rejects(ns.listTables({}, { signal: gone }), isCancelled);
      await assert.rejects(ns.queryTable({ id }, { signal: gone }).toArray(), isCancelled);
      const controller = new AbortController();
      async function* endless() {
        for (const batch of tableFromArrays({ id: Int32Array.from([1]) }).batches) yield batch;
        controller.abort();
        await new Promise(() => {});
      }
      const upload = ns.createTable({ id: ["endless"] }, endless(), { signal: controller.signal });
      await assert.rejects(upload, isCancelled);
      await assert.rejects(ns.describeTable({ id: ["endless"] }), isNotFound);
      async function* stuck() {
        await new Promise(() => {});
        yield new Uint8Array();
      }
      await assert.rejects(ns.createTable({ id: ["late"] }, stuck(), { timeoutMs: 20 }), isDeadlineExceeded);
    });
  });
}
