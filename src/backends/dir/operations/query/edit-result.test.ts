import assert from "node:assert/strict";
import { Field, Float32, Int32, type Table, tableFromIPC, Uint64 } from "apache-arrow";
import fc from "fast-check";
import { test } from "vitest";
import { columns, randomTable, streamOf } from "../../../../../test/fixtures/arrow/random-table.ts";
import { createRandom } from "../../../../../test/support/random.ts";
import { END_OF_STREAM, type FileMessages } from "../../../../arrow/ipc/stream.ts";
import type { BuiltQuery } from "./build.ts";
import { FOUND_ROW, RELEVANCE, ROW_ID } from "./clauses.ts";
import { createResultEditor, foundRows } from "./edit-result.ts";

/** Edits of a result. */
interface Edits extends Pick<BuiltQuery, "hidesRowId" | "skipRows"> {
  /** The ids of the rows that pass the filter after the search, as the remainders of three. */
  readonly passing: readonly bigint[] | undefined;
  readonly ranked: boolean;
  readonly firstVector: number;
}

const anyEdits = fc.record({
  hidesRowId: fc.boolean(),
  passing: fc.option(fc.uniqueArray(fc.bigInt({ min: 0n, max: 2n })), { nil: undefined }),
  skipRows: fc.nat(40),
  ranked: fc.boolean(),
  firstVector: fc.nat(2),
});

/** The first column of a search for several vectors. */
const VECTOR = "query_index";
/** Columns that the editor reads or hides, each somewhere among the others. */
const OWN = [
  [ROW_ID, new Uint64()],
  [FOUND_ROW, new Uint64()],
  [RELEVANCE, new Float32()],
] as const;

/** Returns the rows of a result after the edits, from decoded values. */
function editedRows(tables: readonly Table[], edits: Edits): string[] {
  const { hidesRowId, passing, skipRows, ranked, firstVector } = edits;
  const hidden = [...(hidesRowId ? [ROW_ID] : []), ...(passing ? [FOUND_ROW] : [])];
  return tables
    .flatMap((table) => table.toArray())
    .map((row, rank) => ({
      ...row.toJSON(),
      ...(firstVector > 0 && { [VECTOR]: (row[VECTOR] + firstVector) | 0 }),
      ...(!ranked && { [RELEVANCE]: Math.fround(1 / (60 + rank)) }),
    }))
    .filter((row) => passing?.includes(row[FOUND_ROW] % 3n) ?? true)
    .slice(skipRows)
    .map((row) => textOf(row, hidden));
}

function textOf(row: Readonly<Record<string, unknown>>, hidden: readonly string[] = []): string {
  const shown = Object.entries(row).filter(([name]) => !hidden.includes(name));
  return shown.map(([name, value]) => `${name}: ${value}`).join();
}

test("edits of a result without decoding it are those of its decoded rows", () => {
  const places = fc.array(fc.nat(4), { minLength: OWN.length, maxLength: OWN.length });
  const counts = fc.array(fc.nat(20), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(columns, places, counts, anyEdits, fc.nat(), (others, at, rows, edits, seed) => {
      const fields: Field[] = [...others];
      for (const [index, [name, type]] of OWN.entries()) {
        fields.splice(at[index] as number, 0, new Field(name, type, false));
      }
      fields.unshift(new Field(VECTOR, new Int32(), false));
      const random = createRandom(seed);
      const { parts } = streamOf(rows.map((count) => randomTable(fields, count, random)));
      const { passing, ranked, firstVector } = edits;
      const built = { ...edits, filterAfter: passing && "a filter" } as unknown as BuiltQuery;
      const edit = createResultEditor(built, ranked, firstVector);
      const edited = parts.map((part) => {
        const ids = passing && foundRows(part).filter((id) => passing.includes(id % 3n));
        return edit(part, ids && new Set(ids));
      });
      const read = ({ schema, data }: Pick<FileMessages, "schema" | "data">) =>
        tableFromIPC(Buffer.concat([schema, ...data, END_OF_STREAM]));
      assert.deepEqual(
        edited.flatMap((part) =>
          read(part)
            .toArray()
            .map((row) => textOf(row.toJSON())),
        ),
        editedRows(parts.map(read), edits),
      );
    }),
    { numRuns: Number(process.env["EDIT_RUNS"] ?? 60) },
  );
});
