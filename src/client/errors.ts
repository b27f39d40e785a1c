import { type ErrorName, LanceError, type LanceErrorOptions } from "../namespace/errors.ts";

/** Predicates over the rows of the error table, for errors that a namespace throws. */

type Test = (error: unknown) => error is LanceError;

function oneOf(...names: readonly ErrorName[]): Test {
  const known: ReadonlySet<string> = new Set(names);
  return (error): error is LanceError => error instanceof LanceError && known.has(error.entry.name);
}

/** Whether an object that the call names is missing: a namespace, table, index, tag, branch, version and so on. */
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

/** Whether the object that the call would create exists already. */
export const isAlreadyExists: Test = oneOf(
  "NamespaceAlreadyExists",
  "TableAlreadyExists",
  "TableIndexAlreadyExists",
  "TableTagAlreadyExists",
  "TableBranchAlreadyExists",
);

/** Whether another writer was first; the call may be retried on the new state. */
export const isConflict: Test = oneOf("ConcurrentModification");

/** Whether the state of the object forbids the call: a namespace that is not empty, a table that is only declared. */
export const isInvalidState: Test = oneOf("InvalidTableState", "NamespaceNotEmpty");

/** Whether the request itself is wrong. */
export const isInvalidInput: Test = oneOf(
  "InvalidInput",
  "TableSchemaValidationError",
  "UnsupportedMediaType",
  "PayloadTooLarge",
);

/** Whether the implementation, or the server, lacks the operation. */
export const isUnsupported: Test = oneOf("Unsupported", "RouteNotFound", "MethodNotAllowed");

/** Whether the caller lacks the permission. */
export const isPermissionDenied: Test = oneOf("PermissionDenied");

/** Whether credentials are missing or wrong. */
export const isUnauthenticated: Test = oneOf("Unauthenticated");

/** Whether the server asks to slow down. */
export const isThrottled: Test = oneOf("Throttling");

/** Whether the server cannot be reached or cannot answer now. */
export const isUnavailable: Test = oneOf("ServiceUnavailable");

/** Whether the deadline of the call has expired. */
export const isDeadlineExceeded: Test = oneOf("DeadlineExceeded");

/** Whether the caller's own signal ended the call. */
export const isCancelled: Test = oneOf("Cancelled");

/** Whether an unchanged retry may succeed later. Unless the write is idempotent, it may have happened already. */
export const isRetryable: Test = oneOf("ConcurrentModification", "Throttling", "ServiceUnavailable");

/** How errors name the server of a connection where their authors do not know its address. */
export const SERVER = "the upstream catalog";

/** Returns an error with the address of the server, if it is known, in place of these words. */
export function withServerName(error: LanceError, address: string | undefined): LanceError {
  if (address === undefined || !error.message.includes(SERVER)) return error;
  const message = error.message.replace(SERVER, () => address);
  // An error has all that its options give.
  return new LanceError(error.kind, message, error as LanceErrorOptions);
}
