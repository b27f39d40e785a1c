/** Common part of a scan and a search; each call changes the query. */
export interface NativeQueryBase {
  onlyIf(predicate: string): void;
  fullTextSearch(query: { query: string | NativeTextQuery; columns?: string[] | null }): void;
  /** Columns by name and SQL expression. */
  select(columns: [string, string][]): void;
  selectColumns(columns: string[]): void;
  limit(limit: number): void;
  offset(offset: number): void;
  fastSearch(): void;
  withRowId(): void;
  /** Whether to read the log of the table, too; fails for true if the table has none. */
  useLsm(enable: boolean): void;
  orderBy(ordering: { columnName: string; ascending: boolean; nullsFirst: boolean }[]): void;
  /** Returns the schema of the result as an Arrow IPC file without batches. */
  outputSchema(): Promise<Buffer>;
  /** The timeout, in milliseconds, applies until the last batch has been taken. */
  execute(maxBatchRows?: number, timeoutMs?: number): Promise<NativeBatches>;
  explainPlan(verbose: boolean): Promise<string>;
  /** Runs the query. */
  analyzePlan(): Promise<string>;
}

export interface NativeQuery extends NativeQueryBase {
  nearestTo(vector: Float32Array): NativeVectorQuery;
}

/** A query of rows by their ids. */
export type NativeTakeQuery = Pick<NativeQueryBase, "selectColumns" | "execute">;

export interface NativeVectorQuery extends NativeQueryBase {
  column(column: string): void;
  addQueryVector(vector: Float32Array): void;
  distanceType(type: string): void;
  postfilter(): void;
  refineFactor(factor: number): void;
  nprobes(count: number): void;
  minimumNprobes(count: number): void;
  maximumNprobes(count: number): void;
  distanceRange(lower?: number, upper?: number): void;
  ef(ef: number): void;
  bypassVectorIndex(): void;
}

/** A node of a structured full-text query. */
export interface NativeTextQuery {
  readonly queryType: string;
}

/** The makers of full-text queries. */
export interface NativeTextQueries {
  matchQuery(
    terms: string,
    column: string,
    boost: number,
    fuzziness: number | undefined,
    maxExpansions: number,
    operator: "AND" | "OR",
    prefixLength: number,
  ): NativeTextQuery;
  phraseQuery(terms: string, column: string, slop: number): NativeTextQuery;
  boostQuery(positive: NativeTextQuery, negative: NativeTextQuery, negativeBoost: number): NativeTextQuery;
  multiMatchQuery(
    terms: string,
    columns: string[],
    boosts: number[],
    operator: "AND" | "OR",
  ): NativeTextQuery;
  booleanQuery(queries: [occur: "MUST" | "SHOULD" | "MUST_NOT", query: NativeTextQuery][]): NativeTextQuery;
}

/** The batches of a result, each an Arrow IPC file of its own; null at the end. */
export interface NativeBatches {
  next(): Promise<Buffer | null>;
}
