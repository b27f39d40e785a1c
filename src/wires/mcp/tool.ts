import { z } from "zod";
import { type ErrorName, LanceError } from "../../client/exports.ts";
import type { Namespace } from "../../client/namespace.ts";

/** Parts that a tool works with. */
export interface ToolContext {
  /** The catalog as the caller may use it. */
  readonly namespace: Namespace;
  /** Runs statements in SQL. Default: SQL is not offered. */
  readonly sql?: RunSql | undefined;
  /** Aborts when the client cancels the call, or disconnects. */
  readonly signal: AbortSignal;
}

/** Runs a statement in SQL as a caller, whose tables a namespace reads, and yields its rows as an Arrow IPC stream. */
export type RunSql = (
  statement: string,
  namespace: Namespace,
  signal: AbortSignal,
) => AsyncIterable<Uint8Array>;

/** A tool that a model may call. */
export interface Tool<S extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** Purpose and use, for the model. */
  readonly description: string;
  readonly input: S;
  /** Effect on data: none, an addition, or a change that can lose something. */
  readonly effect: "reads" | "adds" | "changes";
  /**
   * Returns the result as text, JSON in most tools.
   *
   * @throws LanceError, which the model gets as the tool's error.
   */
  run(input: z.output<S>, context: ToolContext): Promise<string>;
}

/** Defines a tool; its input has the type of the schema. */
export function defineTool<S extends z.ZodObject>(tool: Tool<S>): Tool {
  return tool as unknown as Tool;
}

/** Advice for a model about an error, by its name in the error table. */
const ADVICE: Readonly<Partial<Record<ErrorName, string>>> = {
  TableNotFound: "list_tables shows the tables of a namespace.",
  NamespaceNotFound: "list_namespaces shows the namespaces.",
  TableColumnNotFound: "describe_table shows the columns.",
  TableVersionNotFound: "describe_table shows the newest versions.",
  TableAlreadyExists: "Use another name, or add rows with insert_rows.",
  InvalidInput:
    "describe_table shows the columns and their types. Correct the arguments before the next call.",
  TableSchemaValidationError: "describe_table shows the columns and their types.",
  PermissionDenied: "This caller may not do that, so the same call fails again. Tell the user.",
  Unauthenticated: "The credentials of this connection are missing or wrong. Tell the user.",
  Throttling: "Wait before the next call.",
  ServiceUnavailable: "Try again in a few seconds.",
  DeadlineExceeded: "Ask for less: a narrower filter, fewer columns or a smaller limit.",
  ConcurrentModification: "Another writer was first. Look at the table, then try again.",
  PayloadTooLarge: "Send fewer rows in a call.",
  OutcomeUnknown: "The change may have been made. Look at the table before you repeat it.",
  Unsupported: "This catalog does not have the operation.",
};

/** Returns an error as a model reads it: its name in the error table, its message, and what to do. */
export function errorForModel(error: LanceError): string {
  const { kind, message, detail = "", headers } = error;
  const wait = headers["retry-after"];
  const lines = [
    `${kind}: ${message}`,
    detail === message ? "" : detail,
    ADVICE[kind] ?? "",
    wait === undefined ? "" : `Retry after ${wait} s.`,
  ];
  return lines.filter((line) => line !== "").join("\n");
}

/** Returns a failure as an error of the table; whatever else a tool throws is a fault of the tool. */
export function toolError(thrown: unknown): LanceError {
  if (thrown instanceof LanceError) return thrown;
  return new LanceError("Internal", "the tool failed", { cause: thrown });
}

/** Most rows in a result. */
export const MAX_ROWS = 1_000;

/** Most names on a page of a listing. */
export const MAX_NAMES = 500;

const PATH = "Names are joined by slashes.";

/** Arguments that several tools have. */
export const INPUTS = {
  namespace: z
    .string()
    .default("")
    .describe(`Path of a namespace, such as "sales/2026". ${PATH} Default: the root.`),
  table: z.string().min(1).describe(`Path of a table, such as "orders" or "sales/orders". ${PATH}`),
  columns: z
    .array(z.string())
    .min(1)
    .optional()
    .describe("Columns to return. Default: all, except long vectors."),
  filter: z
    .string()
    .min(1)
    .optional()
    .describe("SQL condition for the rows, such as \"price > 10 AND name LIKE 'a%'\"."),
  version: z.int().min(1).optional().describe("Version of the table to read. Default: the newest."),
  branch: z.string().min(1).optional().describe("Branch of the table. Default: main."),
  pageLimit: z.int().min(1).max(MAX_NAMES).default(100).describe("Maximum number of names."),
  pageToken: z
    .string()
    .optional()
    .describe("The next_page_token of the page before. Default: the first page."),
} as const;
