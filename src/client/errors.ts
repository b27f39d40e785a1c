/** What a program asks of an error that a namespace threw: predicates over the rows of the error table. */
import { type ErrorName, LanceError } from "../namespace/errors.ts";

type Test = (error: unknown) => error is LanceError;

function oneOf(...names: readonly ErrorName[]): Test {
  const known: ReadonlySet<string> = new Set(names);
  return (error): error is LanceError => error instanceof LanceError && known.has(error.entry.name);
}

/** Whether something that the call names is missing: a namespace, table, index, tag, branch, version and so on. */
export const isNotFound: Test = oneOf(
  "NamespaceNotFound",
  "TableNotFound",
  "TableIndexNotFound",
  "TableTagNotFound",
  "TransactionNotFound",
  "TableVersionNotFound",
  "TableColumnNotFound",
  "TableBranchNotFound",
);

/** Whether something that the call would make is there already. */
export const isAlreadyExists: Test = oneOf(
  "NamespaceAlreadyExists",
  "TableAlreadyExists",
  "TableIndexAlreadyExists",
  "TableTagAlreadyExists",
  "TableBranchAlreadyExists",
);

/** Whether another writer came first; the call may be tried again on what is there now. */
export const isConflict: Test = oneOf("ConcurrentModification");

/** Whether the state of the object forbids the call: a namespace with content, a table that was only declared. */
export const isInvalidState: Test = oneOf("InvalidTableState", "NamespaceNotEmpty");

/** Whether the request itself is wrong. */
export const isInvalidInput: Test = oneOf(
  "InvalidInput",
  "TableSchemaValidationError",
  "UnsupportedMediaType",
  "PayloadTooLarge",
);

/** Whether the implementation, or the server, does not have the operation. */
export const isUnsupported: Test = oneOf("Unsupported", "RouteNotFound", "MethodNotAllowed");

/** Whether the caller may not do this. */
export const isPermissionDenied: Test = oneOf("PermissionDenied");

/** Whether credentials are missing or wrong. */
export const isUnauthenticated: Test = oneOf("Unauthenticated");

/** Whether the server asks to slow down. */
export const isThrottled: Test = oneOf("Throttling");

/** Whether the server cannot be reached or cannot answer now. */
export const isUnavailable: Test = oneOf("ServiceUnavailable");

/** Whether the time of the call ran out. */
export const isDeadlineExceeded: Test = oneOf("DeadlineExceeded");

/** Whether the caller's own signal ended the call. */
export const isCancelled: Test = oneOf("Cancelled");

/** Whether the same call may succeed later, as it is. A write may have happened even so, unless it is idempotent. */
export const isRetryable: Test = oneOf("ConcurrentModification", "Throttling", "ServiceUnavailable");
