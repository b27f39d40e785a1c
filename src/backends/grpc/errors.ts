import { type DescMethod, fromBinary, getOption } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { http } from "../../gen/google/api/annotations_pb.ts";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { type ErrorResponse, ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import type { Call } from "../../namespace/call.ts";
import { ERROR_TABLE, type ErrorName, errorEntryOfCode, LanceError } from "../../namespace/errors.ts";

/** The rows for statuses of an upstream that says no more than its status. */
const ROWS: Readonly<Record<number, ErrorName>> = {
  [status.CANCELLED]: "ServiceUnavailable",
  [status.UNKNOWN]: "Internal",
  [status.INVALID_ARGUMENT]: "InvalidInput",
  [status.DEADLINE_EXCEEDED]: "DeadlineExceeded",
  [status.PERMISSION_DENIED]: "PermissionDenied",
  [status.RESOURCE_EXHAUSTED]: "Throttling",
  [status.FAILED_PRECONDITION]: "InvalidTableState",
  [status.ABORTED]: "ConcurrentModification",
  [status.OUT_OF_RANGE]: "InvalidInput",
  [status.UNIMPLEMENTED]: "Unsupported",
  [status.INTERNAL]: "Internal",
  [status.UNAVAILABLE]: "ServiceUnavailable",
  [status.DATA_LOSS]: "Internal",
  [status.UNAUTHENTICATED]: "Unauthenticated",
};

/** The rows of statuses that mean one thing of one resource and another of another. */
const BY_RESOURCE: Readonly<Record<number, Readonly<Record<string, ErrorName>>>> = {
  [status.NOT_FOUND]: {
    namespace: "NamespaceNotFound",
    table: "TableNotFound",
    transaction: "TransactionNotFound",
  },
  [status.ALREADY_EXISTS]: { namespace: "NamespaceAlreadyExists", table: "TableAlreadyExists" },
};

/** What is said of failures for which the library's own text names addresses. */
const TEXTS: Readonly<Record<number, string>> = {
  [status.CANCELLED]: "the upstream catalog broke the call off",
  [status.DEADLINE_EXCEEDED]: "the upstream catalog did not answer in time",
  [status.UNAVAILABLE]: "the upstream catalog cannot be reached",
};

/** Trailers that tell a client what to do about an error. */
const ADVICE = ["retry-after", "www-authenticate"];

/**
 * The error that a failed call of the upstream is to our own client.
 *
 * What the upstream says in the details of its status counts first: the row that its `type` names, then its code.
 * Without details the status decides. An abort of our own call comes before either.
 */
export function upstreamError(thrown: unknown, call: Call): LanceError {
  if (thrown instanceof LanceError) return thrown;
  if (call.signal.aborted && call.signal.reason instanceof LanceError) return call.signal.reason;
  if (!isServiceError(thrown)) {
    return new LanceError("Internal", "the answer of the upstream catalog cannot be read", { cause: thrown });
  }
  const detail = detailOf(thrown.metadata);
  const options = { cause: thrown, headers: adviceOf(thrown.metadata) };
  if (detail === undefined)
    return new LanceError(rowOfStatus(thrown.code, call.method), textOf(thrown), options);
  const { instance } = detail;
  return new LanceError(rowOf(detail), detail.error || thrown.details || "the upstream catalog failed", {
    ...options,
    ...(detail.detail && { detail: detail.detail }),
    ...(instance && { instance }),
  });
}

function isServiceError(thrown: unknown): thrown is ServiceError {
  return (
    thrown instanceof Error && "code" in thrown && typeof thrown.code === "number" && "details" in thrown
  );
}

function textOf({ code, details }: ServiceError): string {
  return TEXTS[code] ?? (details || "the upstream catalog failed");
}

function detailOf(metadata: Metadata | undefined): ErrorResponse | undefined {
  const [bytes] = metadata?.get("grpc-status-details-bin") ?? [];
  if (!(bytes instanceof Uint8Array)) return undefined;
  try {
    for (const any of fromBinary(StatusSchema, bytes).details) {
      const detail = anyUnpack(any, ErrorResponseSchema);
      if (detail !== undefined) return detail;
    }
  } catch {
    // Details that are no such message say nothing; the status still does.
  }
  return undefined;
}

function rowOf({ type, code }: ErrorResponse): ErrorName {
  const named = ERROR_TABLE.find((entry) => entry.type === type && entry.code === code);
  return (named ?? errorEntryOfCode(code)).name as ErrorName;
}

function rowOfStatus(code: number, method: DescMethod): ErrorName {
  // The route begins with the kind of object that the method is about.
  const [, , resource = ""] = String(getOption(method, http).pattern.value ?? "").split("/");
  const rows = BY_RESOURCE[code];
  return ROWS[code] ?? rows?.[resource] ?? rows?.["table"] ?? "Internal";
}

function adviceOf(metadata: Metadata | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of ADVICE) {
    const [value] = metadata?.get(name) ?? [];
    if (typeof value === "string") headers[name] = value;
  }
  return headers;
}
