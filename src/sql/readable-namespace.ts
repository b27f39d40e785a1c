import type { MaterializedView } from "./sql-engine.ts";

/** A table at a version or on a branch. */
export interface TableState {
  readonly id: string[];
  readonly version?: bigint | undefined;
  readonly branch?: string | undefined;
}

/** Facts about a version that stays as it is. */
export interface VersionFacts {
  readonly version: bigint;
  readonly manifestPath: string;
  readonly manifestSize?: bigint | undefined;
  readonly timestampMillis?: bigint | undefined;
  readonly eTag?: string | undefined;
}

/** Rows of a table. */
export interface TableQuery extends TableState {
  readonly filter?: string;
  readonly k?: bigint;
  readonly columns?: { readonly columnNames: string[] };
  readonly prefilter?: boolean;
  readonly vector?: { readonly singleVector: number[] };
  readonly vectorColumn?: string;
  readonly bypassVectorIndex?: boolean;
  readonly nprobes?: number | undefined;
  readonly refineFactor?: number | undefined;
  readonly distanceType?: string | undefined;
  readonly fullTextQuery?: { readonly stringQuery: { readonly columns: string[]; readonly query: string } };
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

/** What tables are read by: a part of a namespace, of which each operation reads as its caller. */
export interface ReadableNamespace {
  /** Lists a single namespace, by which a statement that reads no table passes the limits and the records. */
  listNamespaces(
    request: { readonly id: string[]; readonly limit: number },
    options: ReadOptions,
  ): Promise<unknown>;
  describeTable(
    request: TableState & { readonly loadDetailedMetadata: boolean },
    options: ReadOptions,
  ): Promise<{ readonly version?: bigint | undefined }>;
  describeTableVersion(
    request: TableState,
    options: ReadOptions,
  ): Promise<{ readonly version?: VersionFacts | undefined }>;
  countTableRows(request: TableState, options: ReadOptions): Promise<{ readonly count: bigint }>;
  queryTable(request: TableQuery, options: ReadOptions): { bytes(): AsyncIterable<Uint8Array> };
  /** Default: tables are not listed. */
  listTables?(
    request: ListedPage & { readonly includeDeclared: boolean },
    options: ReadOptions,
  ): Promise<TablePage>;
  /** Default: there are no views. */
  listViews?(request: ListedPage, options: ReadOptions): Promise<ViewPage>;
  /** Default: there are no views. */
  describeView?(
    request: { readonly id: string[] },
    options: ReadOptions,
  ): Promise<{ readonly query: string; readonly defaultNamespace: readonly string[] }>;
  /** Default: there are no materialized views. */
  describeMaterializedView?(
    request: { readonly id: string[] },
    options: ReadOptions,
  ): Promise<MaterializedView>;
  /** Default: there are no materialized views. */
  listMaterializedViews?(request: ListedPage, options: ReadOptions): Promise<ViewPage>;
}

/** A page of a listing. */
export interface ListedPage {
  readonly id: string[];
  readonly pageToken?: string | undefined;
  readonly limit: number;
}

interface TablePage {
  readonly tables: readonly string[];
  readonly pageToken?: string | undefined;
}

export interface ViewPage {
  readonly views: readonly string[];
  readonly pageToken?: string | undefined;
}
