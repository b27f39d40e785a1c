import { formatFieldPath } from "../../../../arrow/field-path.ts";
import type { ArrowSchema } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { NativeQueryBase } from "../../engine/native/query.ts";
import { applyClauses, type Columns, RELEVANCE, ROW_ID, selectColumns } from "./clauses.ts";
import type { QueryFields } from "./fields.ts";
import type { TextSearch } from "./text.ts";
import type { VectorSearch } from "./vector.ts";

/** A search for vectors and words. */
export interface HybridSearch {
  readonly table: NativeTable;
  readonly schema: ArrowSchema;
  readonly request: QueryFields;
  readonly vector: VectorSearch;
  readonly text: TextSearch;
  /** The columns of the result, {@link withoutScores}; undefined for all. */
  readonly columns: Columns | undefined;
  /** Maximum number of rows, those that are left out at the start included. */
  readonly rows: number;
}

/** The engine's queries for a hybrid search. */
export interface HybridQueries {
  /** Builds the search. */
  readonly query: () => Promise<NativeQueryBase>;
  /** Builds a query whose output has the columns of the result. */
  readonly shape: () => NativeQueryBase;
  /** Its two searches, by name, to be explained. */
  readonly steps: readonly (readonly [name: string, query: NativeQueryBase])[];
}

/** Scores that the engine adds to the columns of a hybrid search by itself. */
const SCORES = ["_score", RELEVANCE];

/** Leaves out the columns that every result of a hybrid search has. */
export function withoutScores(columns: Columns): Columns {
  return { ...columns, entries: columns.entries.filter(([name]) => !SCORES.includes(name)) };
}

/**
 * Builds a search for vectors and words whose ranks are fused by reciprocal rank. The engine would apply an offset
 * before the fusion, and an order to the ranks.
 *
 * @throws LanceError InvalidInput, Unsupported
 */
export function hybridQueries(search: HybridSearch): HybridQueries {
  const { table, schema, request, vector, text, columns, rows } = search;
  if (vector.vectors.length > 1) {
    throw new LanceError("InvalidInput", "a hybrid search accepts one query vector, not several");
  }
  if (request.orderBy.length > 0) {
    throw new LanceError(
      "Unsupported",
      "the rows of a hybrid search come by relevance; order_by is not supported",
    );
  }
  const start = (of: { vector?: boolean; text?: boolean }) => {
    const query = of.vector ? vector.apply(table.query()) : table.query();
    if (of.text) text.apply(query);
    applyClauses(query, request);
    query.limit(rows);
    return query;
  };
  const finish = (query: NativeQueryBase) => {
    if (request.withRowId) query.withRowId();
    selectColumns(query, columns);
    return query;
  };
  return {
    query: async () => finish(start({ vector: true, text: true })),
    shape() {
      const query = start({ text: true });
      query.select([
        ...(columns?.entries ?? schema.fields.map(({ name }) => [name, formatFieldPath([name])])),
        ["_score", "_score"],
        ...(request.withRowId ? ([[ROW_ID, ROW_ID]] as const) : []),
        [RELEVANCE, "CAST(_score AS FLOAT)"],
      ] as [string, string][]);
      return query;
    },
    steps: [
      ["vector search", finish(start({ vector: true }))],
      ["full-text search", finish(start({ text: true }))],
    ],
  };
}
