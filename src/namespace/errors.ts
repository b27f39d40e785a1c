/**
 * The error table: Lance error code, HTTP status, gRPC code, `type` and `title`. The last two follow from the status.
 *
 * Rows 0 to 23 are the public API's codes. The rows after them are failures for which the public API has no codes, most
 * of them of the transport: they borrow the nearest code and keep their own HTTP status and gRPC code.
 */

/** A row of the error table. */
export interface ErrorEntry {
  /** Name in the public API, or a name of our own. */
  readonly name: string;
  /** Numeric Lance error code, on which clients branch. */
  readonly code: number;
  readonly httpStatus: number;
  /** Numeric gRPC status code. */
  readonly grpcCode: number;
  /** Relative URI in the manner of RFC 9457, for example `/errors/not-found-error`. */
  readonly type: string;
  /** Short title of the `type`. */
  readonly title: string;
}

/** Type and title of an error body. */
type Problem = Pick<ErrorEntry, "type" | "title">;

/** Types and titles that the specification lists for statuses. Errors that share a status differ in `code` and `kind`. */
const SPECIFIED: Readonly<Record<number, Problem>> = {
  400: { type: "/errors/bad-request", title: "Malformed request" },
  401: {
    type: "/errors/unauthorized-request",
    title: "No valid authentication credentials for the operation",
  },
  403: { type: "/errors/forbidden-request", title: "Not authorized to make this request" },
  404: { type: "/errors/not-found-error", title: "Not found Error" },
  409: { type: "/errors/conflict", title: "The namespace has been concurrently modified" },
  500: { type: "/errors/server-error", title: "Internal Server Error" },
  503: { type: "/errors/service-unavailable", title: "Slow down" },
};

const GRPC = {
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

const rows = [
  ["Unsupported", 0, 406, GRPC.unimplemented],
  ["NamespaceNotFound", 1, 404, GRPC.notFound],
  ["NamespaceAlreadyExists", 2, 409, GRPC.alreadyExists],
  ["NamespaceNotEmpty", 3, 409, GRPC.failedPrecondition],
  ["TableNotFound", 4, 404, GRPC.notFound],
  ["TableAlreadyExists", 5, 409, GRPC.alreadyExists],
  ["TableIndexNotFound", 6, 404, GRPC.notFound],
  ["TableIndexAlreadyExists", 7, 409, GRPC.alreadyExists],
  ["TableTagNotFound", 8, 404, GRPC.notFound],
  ["TableTagAlreadyExists", 9, 409, GRPC.alreadyExists],
  ["TransactionNotFound", 10, 404, GRPC.notFound],
  ["TableVersionNotFound", 11, 404, GRPC.notFound],
  ["TableColumnNotFound", 12, 404, GRPC.notFound],
  ["InvalidInput", 13, 400, GRPC.invalidArgument],
  ["ConcurrentModification", 14, 409, GRPC.aborted],
  ["PermissionDenied", 15, 403, GRPC.permissionDenied],
  ["Unauthenticated", 16, 401, GRPC.unauthenticated],
  ["ServiceUnavailable", 17, 503, GRPC.unavailable],
  ["Internal", 18, 500, GRPC.internal],
  ["InvalidTableState", 19, 409, GRPC.failedPrecondition],
  ["TableSchemaValidationError", 20, 400, GRPC.invalidArgument],
  ["Throttling", 21, 429, GRPC.resourceExhausted],
  ["TableBranchNotFound", 22, 404, GRPC.notFound],
  ["TableBranchAlreadyExists", 23, 409, GRPC.alreadyExists],
  ["RouteNotFound", 0, 404, GRPC.unimplemented],
  ["MethodNotAllowed", 0, 405, GRPC.unimplemented],
  ["UnsupportedMediaType", 13, 415, GRPC.invalidArgument],
  ["PayloadTooLarge", 13, 413, GRPC.resourceExhausted],
  ["RangeNotSatisfiable", 13, 416, GRPC.outOfRange],
  ["IdempotencyKeyReused", 13, 422, GRPC.invalidArgument],
  ["DeadlineExceeded", 17, 504, GRPC.deadlineExceeded],
  ["Cancelled", 17, 499, GRPC.cancelled],
  ["DataLoss", 18, 500, GRPC.dataLoss],
  // Clients and proxies repeat the registered statuses of failures.
  ["OutcomeUnknown", 18, 520, GRPC.unknown],
] as const;

/** Name of a row of the error table. */
export type ErrorName = (typeof rows)[number][0];

/** Number of rows with a code of their own in the public API. */
export const PUBLIC_ERROR_COUNT = 24;

const entries = rows.map(([name, code, httpStatus, grpcCode]): ErrorEntry => {
  return { name, code, httpStatus, grpcCode, ...problemOf(name, httpStatus) };
});

/**
 * Returns the type and the title of an error that is answered with an HTTP status: those that the specification lists for
 * the status, or else the name in words.
 */
export function problemOf(name: string, status: number): Problem {
  const specified = SPECIFIED[status];
  if (specified !== undefined) return specified;
  const words = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  const title = words.charAt(0).toUpperCase() + words.slice(1);
  return { type: `/errors/${words.replaceAll(" ", "-")}`, title };
}

/** All rows, the public codes first and in their order. */
export const ERROR_TABLE: readonly ErrorEntry[] = entries;

const byName = new Map(entries.map((entry) => [entry.name, entry]));

/** Returns the row of a Lance error code; an unknown code is Internal, as in the public clients. */
export function errorEntryOfCode(code: number): ErrorEntry {
  return entries.slice(0, PUBLIC_ERROR_COUNT).find((entry) => entry.code === code) ?? errorEntry("Internal");
}

/** Rows by their names in letters. */
const bySlug = new Map(entries.map((entry) => [slugOf(entry.name), entry]));

/**
 * Returns the row that the first of several texts names that names any: `TableNotFound`, or the same words in
 * a type or a title, `/errors/table-not-found` and `Table not found`.
 */
export function errorEntryNamed(...texts: readonly (string | undefined)[]): ErrorEntry | undefined {
  for (const text of texts) {
    const entry = text === undefined ? undefined : bySlug.get(slugOf(text));
    if (entry !== undefined) return entry;
  }
  return undefined;
}

/** Returns the status for which the specification lists a type. */
export function statusOfType(type: string): number | undefined {
  const found = Object.entries(SPECIFIED).find(([, problem]) => problem.type === type);
  return found && Number(found[0]);
}

function slugOf(text: string): string {
  return text
    .slice(text.lastIndexOf("/") + 1)
    .replaceAll(/[^A-Za-z]/g, "")
    .toLowerCase();
}

/** Returns the row of a name. */
export function errorEntry(name: ErrorName): ErrorEntry {
  return byName.get(name) as ErrorEntry;
}

/** Failure of an upstream, which determines whether its call may be retried. */
export type UpstreamFault =
  /** The connection failed or was refused: nothing was sent. */
  | "unreached"
  /** The connection was lost before the answer began. */
  | "reset"
  /** The upstream answered that it cannot answer now. */
  | "unavailable"
  /** The upstream answered that there are too many calls. */
  | "throttled"
  /** The answer did not begin in time. */
  | "silent"
  /** The answer broke off after its start, or is invalid. */
  | "broken"
  /** The answer arrived, and is larger than the gateway takes. */
  | "oversized"
  /** The call was not sent, because too many others were in flight or waiting. */
  | "crowded";

/** Limit of the gateway that a call can meet. */
export type LimitName =
  | "rate"
  | "concurrency"
  | "memory"
  | "upload_size"
  | "query_time"
  | "query_rows"
  | "waiting_changes"
  | "wrong_credentials";

/** Options of an error, in addition to its row and its message. */
export interface LanceErrorOptions {
  /** Longer text for people. */
  readonly detail?: string;
  /** Underlying failure; logged, never shown to clients. */
  readonly cause?: unknown;
  /** Headers of the answer, for example `retry-after` or `allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The upstream's name for the occurrence: the id of its request, or its path. */
  readonly instance?: string;
  /** Failure of an upstream. Default: none is known; the upstream has answered, or was never called. */
  readonly fault?: UpstreamFault | undefined;
  /** Limit of the gateway that the call has met. Default: none. */
  readonly limit?: LimitName | undefined;
}

/** Longest text of an error; messages quote what callers send, which may be megabytes. */
const MAX_TEXT_LENGTH = 2000;

/** Returns a text that is short, and has no half of a surrogate pair, with which gRPC-Web breaks the answer off. */
function shortened(text: string): string {
  const short = text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH - 1)}…`;
  return short.toWellFormed();
}

/** Marks an error for every copy of this package: a plugin may import another one than the gateway runs on. */
const MARK: unique symbol = Symbol.for("lance-gateway.LanceError") as never;

/** A failure that a client sees: a row of the table, and a message without the row's name. */
export class LanceError extends Error {
  readonly [MARK] = true;
  readonly entry: ErrorEntry;
  readonly detail: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly instance: string | undefined;
  readonly fault: UpstreamFault | undefined;
  readonly limit: LimitName | undefined;

  constructor(name: ErrorName, message: string, options: LanceErrorOptions = {}) {
    super(shortened(message), { cause: options.cause });
    this.name = "LanceError";
    this.entry = errorEntry(name);
    this.detail = options.detail === undefined ? undefined : shortened(options.detail);
    this.headers = options.headers ?? {};
    this.instance = options.instance === undefined ? undefined : shortened(options.instance);
    this.fault = options.fault;
    this.limit = options.limit;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // Classes that extend this one inherit the check. A class that named itself here would be called otherwise in the package.
    // biome-ignore lint/complexity/noThisInStatic: it is the class that is asked.
    if (!Object.hasOwn(this, Symbol.hasInstance)) return super[Symbol.hasInstance](value);
    return typeof value === "object" && value !== null && MARK in value;
  }

  /** Numeric Lance error code. */
  get code(): number {
    return this.entry.code;
  }

  /** HTTP status of the error. */
  get status(): number {
    return this.entry.httpStatus;
  }

  /** Name of the row, for example `TableNotFound`. */
  get kind(): ErrorName {
    return this.entry.name as ErrorName;
  }

  /** Whether this is an error of the given row. */
  is(name: ErrorName): boolean {
    return this.entry.name === name;
  }
}

/** Whether a thrown value is a {@link LanceError} of the given row. */
export function isLanceError(error: unknown, name: ErrorName): error is LanceError {
  return error instanceof LanceError && error.is(name);
}

/** Where a server tells its operators the cause of an error that clients do not see. */
export const IN_LOG = "the server's log has it under this request's id";

/** Returns the error that clients see for a thrown value: itself, or an opaque Internal for anything unknown. */
export function toLanceError(thrown: unknown): LanceError {
  if (thrown instanceof LanceError) return thrown;
  return new LanceError("Internal", `internal error; ${IN_LOG}`, { cause: thrown });
}
