import type { SqlColumn } from "../column-types.ts";

/** Bounds of a process, which hold for every statement that it runs. */
export interface ProcessBounds {
  readonly memoryMib: number;
  /** Memory of the tables that the process keeps, besides that of a statement. */
  readonly keptMib: number;
  readonly threads: number;
}

/** A table of a statement for its process. */
export interface ScannedTable {
  /** Name for errors. */
  readonly name: string;
  readonly columns: readonly SqlColumn[];
  readonly rows: number | undefined;
}

/** The tables of a statement. */
export interface StatementTables {
  readonly tables: readonly ScannedTable[];
  /** For each scan of the statement, in the order of the scans' numbers: the position of its table. */
  readonly places: readonly number[];
}

/** Requests to a process; each has one reply, and `run` has batches before it. */
export type Request =
  /** The body is a statement; the reply's body is its tree. */
  | { readonly kind: "parse" }
  /** The body is a tree; the reply's body is the text that the process makes of it, and the tree of that text. */
  | { readonly kind: "write" }
  /** Binds the text in the body under an id; the reply's body has the schemas of the result and of the parameters. */
  | ({
      readonly kind: "bind";
      readonly id: number;
      /** Id of a statement that the process forgets. */
      readonly forgotten: number | undefined;
    } & StatementTables)
  /** Keeps the rows of a table under a name; the reply's body is the memory of all tables that are kept, in bytes as text. */
  | { readonly kind: "keep"; readonly name: string; readonly table: ScannedTable }
  /** Drops tables that are kept; the reply is that of `keep`. */
  | { readonly kind: "drop"; readonly names: readonly string[] }
  /** Runs what is bound under an id; the body is an IPC stream of the parameters, or empty. */
  | { readonly kind: "run"; readonly id: number; readonly maxRows: number | undefined };

/** Requests of a process while it runs a statement. */
export type ScanRequest =
  | {
      readonly kind: "open";
      readonly scan: number;
      readonly place: number;
      readonly columns: readonly string[];
    }
  | { readonly kind: "next"; readonly scan: number }
  | { readonly kind: "leave"; readonly scan: number };

/** What a process is told about a scan: bytes in the body, the end, or that reading failed. */
export type ScanReply = { readonly kind: "piece" } | { readonly kind: "end" } | { readonly kind: "failed" };

/** Replies of a process. */
export type Reply =
  /** The body has two parts, of which the first has so many bytes. */
  | { readonly kind: "done"; readonly firstBytes?: number }
  /** The body is an IPC message: the schema, or a batch. */
  | { readonly kind: "message" }
  /** The statement fails; with `bound`, by a bound. */
  | {
      readonly kind: "error";
      readonly message: string;
      readonly type?: string;
      readonly bound?: "memory" | "rows";
    };
