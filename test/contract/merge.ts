import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Int32, Utf8 } from "apache-arrow";
import { describe, test } from "vitest";
import type { MergeInsertIntoTableRequestSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { otherStream, people, personFile, personStream, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { streamOf } from "../support/rows.ts";
import type { World } from "./world.ts";

type Merge = Omit<MessageInitShape<typeof MergeInsertIntoTableRequestSchema>, "$typeName">;

const UPSERT = { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };
const RACERS = 16;

/** Encodes rows of two key columns and a value. */
function pairs(
  rows: readonly (readonly [a: number | null, b: string | null, value: string | null])[],
): Uint8Array {
  return streamOf({
    a: { type: new Int32(), values: rows.map(([a]) => a) },
    b: { type: new Utf8(), values: rows.map(([, b]) => b) },
    value: { type: new Utf8(), values: rows.map(([, , value]) => value) },
  });
}

/** Merging rows by key. */
export function mergeTests(world: World): void {
  const merge = (id: string[], options: Merge, rows = personStream(people(4, 3))) =>
    world.client.mergeInsertIntoTable({ ...options, id }, rows);
  const counts = async (...args: Parameters<typeof merge>) => {
    const { numInsertedRows, numUpdatedRows, numDeletedRows } = await merge(...args);
    return [numInsertedRows, numUpdatedRows, numDeletedRows].map(Number);
  };
  const rowsIn = async (id: string[], branch?: string) =>
    rowsOf((await world.client.queryTable({ id, ...(branch && { branch }) })).bytes);
  const idsIn = async (id: string[]) =>
    (await rowsIn(id)).map((row) => Number(row["id"])).sort((a, b) => a - b);
  /** Returns people whose names mark them as new. */
  const renamed = (count: number, first: number) =>
    personStream(people(count, first).map((person) => ({ ...person, name: `new ${person.id}` })));

  describe("merging", () => {
    test("inserts, updates and deletes according to the flags, and answers with the counts and the version", async () => {
      const inserted = await world.table();
      const answer = await merge(inserted, { on: ["id"], whenNotMatchedInsertAll: true });
      assert.deepEqual([answer.numInsertedRows, answer.numUpdatedRows, answer.numDeletedRows], [2n, 0n, 0n]);
      assert.equal(answer.version, 2n);
      assert.deepEqual(await idsIn(inserted), [0, 1, 2, 3, 4, 5, 6]);

      const updated = await world.table();
      const update = { on: ["id"], whenMatchedUpdateAll: true };
      assert.deepEqual(await counts(updated, update, renamed(4, 3)), [0, 2, 0]);
      const names = (await rowsIn(updated)).map((row) => row["name"]).sort();
      assert.deepEqual(names, ["new 3", "new 4", "p0", "p1", "p2"]);

      const both = await world.table();
      assert.deepEqual(await counts(both, UPSERT), [2, 2, 0]);

      const all = await world.table();
      assert.deepEqual(await counts(all, { ...UPSERT, whenNotMatchedBySourceDelete: true }), [2, 2, 3]);
      assert.deepEqual(await idsIn(all), [3, 4, 5, 6]);

      const deleted = await world.table();
      assert.deepEqual(await counts(deleted, { on: ["id"], whenNotMatchedBySourceDelete: true }), [0, 0, 3]);
      assert.deepEqual(await idsIn(deleted), [3, 4]);
    });

    test("a blank filter is refused, and changes nothing", async () => {
      const id = await world.table();
      const on = ["id"];
      for (const options of [
        { on, whenMatchedUpdateAll: true, whenMatchedUpdateAllFilt: " " },
        { on, whenNotMatchedBySourceDelete: true, whenNotMatchedBySourceDeleteFilt: "" },
      ])
        await refused("InvalidInput", merge(id, options));
      assert.deepEqual(await idsIn(id), [0, 1, 2, 3, 4]);
    });

    test("only inserted rows need every column that is not nullable", async () => {
      const columns = (ids: number[], names: readonly string[]) =>
        Object.fromEntries(names.map((name) => [name, { type: new Int32(), values: ids, nullable: false }]));
      const part = streamOf(columns([1, 2], ["id", "a"]));
      const deletes = { on: ["id"], whenNotMatchedBySourceDelete: true };
      const updates = { on: ["id"], whenMatchedUpdateAll: true };
      for (const [name, options, expected] of [
        ["updates", updates, [0, 1, 0]],
        ["deletes", deletes, [0, 0, 1]],
        ["both", { ...updates, ...deletes }, [0, 1, 1]],
      ] as const) {
        const id = [await world.namespace(), "t"];
        await world.client.createTable({ id }, streamOf(columns([0, 1], ["id", "a", "b"])));
        assert.deepEqual(await counts(id, { ...options, on: ["id"] }, part), expected, name);
        await refused("TableSchemaValidationError", merge(id, UPSERT, part));
      }
    });

    test("the filters apply to the update and to the deletion", async () => {
      const id = await world.table();
      const updated = await counts(
        id,
        {
          on: ["id"],
          whenMatchedUpdateAll: true,
          whenMatchedUpdateAllFilt: "target.id < 4 AND source.name = 'new 3'",
        },
        renamed(4, 3),
      );
      assert.deepEqual(updated, [0, 1, 0]);
      const removed = await counts(id, {
        on: ["id"],
        whenNotMatchedBySourceDelete: true,
        whenNotMatchedBySourceDeleteFilt: "name = 'p1'",
      });
      assert.deepEqual(removed, [0, 0, 1]);
      assert.deepEqual(await idsIn(id), [0, 2, 3, 4]);
    });

    test("a key of several columns matches where all of them agree, in any script", async () => {
      const id = [await world.namespace(), "t"];
      const first = [
        [1, "ä", "one"],
        [1, "\u{1f600}", "two"],
        [2, "ä", "three"],
      ] as const;
      await world.client.createTable({ id }, pairs(first));
      const rows = pairs([
        [1, "\u{1f600}", "changed"],
        [2, "ß", "new"],
      ]);
      assert.deepEqual(await counts(id, { ...UPSERT, on: ["a", "b"] }, rows), [1, 1, 0]);
      const values = (await rowsIn(id)).map((row) => row["value"]).sort();
      assert.deepEqual(values, ["changed", "new", "one", "three"]);
    });

    test("a null key matches nothing, and values may become null", async () => {
      const id = [await world.namespace(), "t"];
      await world.client.createTable(
        { id },
        pairs([
          [null, "x", "kept"],
          [1, "x", "gone"],
        ]),
      );
      const rows = pairs([
        [null, "x", "added"],
        [1, "x", null],
      ]);
      assert.deepEqual(await counts(id, { ...UPSERT, on: ["a"] }, rows), [1, 1, 0]);
      const values = (await rowsIn(id)).map((row) => String(row["value"])).sort();
      assert.deepEqual(values, ["added", "kept", "null"]);
    });

    test("a merge without rows changes nothing, or deletes all rows on request", async () => {
      const id = await world.table();
      assert.deepEqual(await counts(id, UPSERT, personStream([])), [0, 0, 0]);
      assert.equal(await world.count(id), 5);
      const remove = { on: ["id"], whenNotMatchedBySourceDelete: true };
      assert.deepEqual(await counts(id, remove, personStream([])), [0, 0, 5]);
      assert.equal(await world.count(id), 0);
    });

    test("a merge gives a declared table its first version, with the rows only if they are to be inserted", async () => {
      const filled = await world.declared();
      const answer = await merge(filled, UPSERT);
      assert.deepEqual([answer.numInsertedRows, answer.numUpdatedRows, answer.version], [4n, 0n, 1n]);
      assert.deepEqual(await idsIn(filled), [3, 4, 5, 6]);
      const empty = await world.declared();
      assert.deepEqual(await counts(empty, { on: ["id"], whenMatchedUpdateAll: true }), [0, 0, 0]);
      assert.equal(await world.count(empty), 0);
      assert.deepEqual(await counts(empty, UPSERT), [4, 0, 0]);
      const fromFile = await world.declared();
      const update = { on: ["id"], whenMatchedUpdateAll: true };
      assert.deepEqual(await counts(fromFile, update, personFile(people(3))), [0, 0, 0]);
      assert.deepEqual(await counts(fromFile, UPSERT, personFile(people(3))), [3, 0, 0]);
    });

    test("use_index and a long timeout change nothing", async () => {
      for (const options of [
        { useIndex: true },
        { useIndex: false },
        { timeout: "1m30s" },
        { timeout: "" },
      ]) {
        assert.deepEqual(await counts(await world.table(), { ...UPSERT, ...options }), [2, 2, 0]);
      }
    });

    test("updates some of the columns under a condition where the key has an index", async () => {
      const rows = streamOf({
        id: { type: new Int32(), values: [1, 2, 9], nullable: false },
        name: { type: new Utf8(), values: ["new 1", "new 2", "new 9"] },
      });
      for (const useIndex of [undefined, true]) {
        const id = await world.table();
        await world.client.createTableScalarIndex({ id, column: "id", indexType: "BTREE" });
        for (const [condition, updated] of [
          ["'a' is null", 0],
          ["target.vector IS NULL", 0],
          ["source.name = 'new 2'", 1],
          ["target.vector IS NOT NULL", 2],
        ] as const) {
          const update = { on: ["id"], whenMatchedUpdateAll: true, whenMatchedUpdateAllFilt: condition };
          assert.deepEqual(await counts(id, { ...update, ...(useIndex && { useIndex }) }, rows), [
            0,
            updated,
            0,
          ]);
        }
        const found = await rowsIn(id);
        assert.deepEqual(found.map((row) => row["name"]).sort(), ["new 1", "new 2", "p0", "p3", "p4"]);
        assert.ok(found.every((row) => row["vector"] !== null));
      }
    });

    test("inserts rows with a null in the key where the key has an index", async () => {
      const rows = pairs([
        [null, "b", "new"],
        [1, "b", "new"],
        [2, null, "new"],
      ]);
      for (const on of [["a"], ["a", "b"], ["b", "a"]]) {
        for (const indexed of ["a", "b"]) {
          const id = [await world.namespace(), "t"];
          await world.client.createTable({ id }, pairs([[1, "b", "old"]]));
          await world.client.createTableScalarIndex({ id, column: indexed, indexType: "BTREE" });
          const answer = await counts(id, { ...UPSERT, on, useIndex: true }, rows);
          assert.deepEqual(
            [answer, await world.count(id)],
            [[2, 1, 0], 3],
            `${on} with an index of ${indexed}`,
          );
        }
      }
    });

    test("a short timeout ends the merge and changes nothing", async () => {
      const id = await world.table();
      await refused(
        "DeadlineExceeded",
        merge(id, { ...UPSERT, timeout: "1us" }, personStream(people(50_000))),
      );
      assert.equal(await world.count(id), 5);
    });

    test("a merge into a branch leaves main unchanged", async () => {
      const id = await world.table();
      await world.client.createTableBranch({ id, name: "b" });
      assert.deepEqual(await counts(id, { ...UPSERT, branch: "b" }), [2, 2, 0]);
      assert.equal((await rowsIn(id, "b")).length, 7);
      assert.equal(await world.count(id), 5);
      await refused("TableBranchNotFound", merge(id, { ...UPSERT, branch: "missing" }));
    });

    test("concurrent merges of equal keys leave each key once", async () => {
      for (const id of [await world.table([]), await world.declared()]) {
        const racers = Array.from({ length: RACERS }, () => counts(id, UPSERT));
        const sums = (await Promise.all(racers)).reduce((a, b) => a.map((n, i) => n + (b[i] ?? 0)));
        assert.deepEqual(sums, [4, (RACERS - 1) * 4, 0]);
        assert.deepEqual(await idsIn(id), [3, 4, 5, 6]);
      }
    });

    const wrong: Record<string, [Merge, "InvalidInput" | "TableColumnNotFound"]> = {
      "no flag": [{ on: ["id"] }, "InvalidInput"],
      "flags that are false": [{ on: ["id"], whenNotMatchedInsertAll: false }, "InvalidInput"],
      "no key": [{ whenNotMatchedInsertAll: true }, "InvalidInput"],
      "a key that is no path": [{ ...UPSERT, on: ["a..b"] }, "InvalidInput"],
      "a key that is missing": [{ ...UPSERT, on: ["id", "nothing"] }, "TableColumnNotFound"],
      "a filter without its flag": [
        { on: ["id"], whenNotMatchedInsertAll: true, whenMatchedUpdateAllFilt: "true" },
        "InvalidInput",
      ],
      "a filter that is cut off": [{ ...UPSERT, whenMatchedUpdateAllFilt: "source.id >" }, "InvalidInput"],
      "a filter of two expressions": [{ ...UPSERT, whenMatchedUpdateAllFilt: "true; false" }, "InvalidInput"],
      "a filter of a missing column": [
        { ...UPSERT, whenMatchedUpdateAllFilt: "target.nothing = 1" },
        "TableColumnNotFound",
      ],
      "a deletion's filter that is no condition": [
        { on: ["id"], whenNotMatchedBySourceDelete: true, whenNotMatchedBySourceDeleteFilt: "id" },
        "InvalidInput",
      ],
      ...Object.fromEntries(
        ["soon", "30", "PT30S", "-1s", "0s", "1 fortnight"].map((timeout) => [
          `the timeout ${timeout}`,
          [{ ...UPSERT, timeout }, "InvalidInput"],
        ]),
      ),
    };
    for (const [what, [options, error]] of Object.entries(wrong)) {
      test(`${what} is ${error} and changes nothing`, async () => {
        const id = await world.table();
        await refused(error, merge(id, options));
        assert.equal(await world.count(id), 5);
        assert.equal((await world.client.describeTable({ id, loadDetailedMetadata: true })).version, 1n);
      });
    }

    test("rows that do not fit are refused before anything is written, with the column's name", async () => {
      const id = await world.table();
      const unknown = await refused("TableSchemaValidationError", merge(id, UPSERT, otherStream()));
      assert.match(unknown.message, /"id"|unrelated/);
      const text = streamOf({ id: { type: new Utf8(), values: ["1"], nullable: false } });
      const mistyped = await refused("TableSchemaValidationError", merge(id, UPSERT, text));
      assert.match(mistyped.message, /"id"/);
      assert.equal(await world.count(id), 5);
    });

    test("two rows that match the same row are refused", async () => {
      const id = await world.table();
      await refused("InvalidInput", merge(id, UPSERT, personStream([...people(1), ...people(1)])));
    });

    test("errors distinguish a missing table from a broken body", async () => {
      await refused("TableNotFound", merge([await world.namespace(), "missing"], UPSERT));
      await refused("InvalidInput", merge(await world.table(), UPSERT, Buffer.from("id,name\n")));
    });
  });
}
