import { type ErrorName, LanceError } from "../../client/exports.ts";

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
