import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { ErrorResponse } from "../gen/lance/namespace/v1/common_pb.ts";
import { ERROR_TABLE, type ErrorName, errorEntryOfCode, LanceError, type UpstreamFault } from "./errors.ts";

/** The rows for gRPC codes of servers, and of proxies before them, that say no more than that. */
const BY_CODE: Readonly<Record<number, ErrorName>> = {
  1: "ServiceUnavailable",
  3: "InvalidInput",
  4: "DeadlineExceeded",
  7: "PermissionDenied",
  8: "Throttling",
  9: "InvalidTableState",
  10: "ConcurrentModification",
  11: "InvalidInput",
  12: "Unsupported",
  14: "ServiceUnavailable",
  16: "Unauthenticated",
};

/** The rows of codes that mean one thing of one resource and another of another. */
const BY_RESOURCE: Readonly<Record<number, Readonly<Record<string, ErrorName>>>> = {
  5: { namespace: "NamespaceNotFound", table: "TableNotFound", transaction: "TransactionNotFound" },
  6: { namespace: "NamespaceAlreadyExists", table: "TableAlreadyExists" },
};

/** Metadata that tells a client what to do about an error. */
const ADVICE = ["retry-after", "www-authenticate", "allow"];

/** How a call over gRPC or Connect failed. */
export interface StatusFailure {
  /** The numeric gRPC code, which is Connect's too. */
  readonly code: number;
  /** What the status says in words. */
  readonly text: string;
  /** What the status has in its details, if that is an error of the contract. */
  readonly detail: ErrorResponse | undefined;
  /** A value of the answer's metadata. */
  header(name: string): string | null | undefined;
  /** What an error of a row tells of the upstream. Default: nothing. */
  fault?(name: ErrorName): UpstreamFault | undefined;
  readonly cause: unknown;
}

/**
 * The error that a failed call over gRPC or Connect stands for.
 *
 * The details of the status count first: the row that their `type` names, then that of their code. Without them the
 * code of the status decides, and for what is missing or there already, what the method is about.
 */
export function errorOfStatus(failure: StatusFailure, method: DescMethod): LanceError {
  const { detail, text, cause } = failure;
  const name = detail === undefined ? rowOfCode(failure.code, method) : rowOfDetail(detail);
  return new LanceError(name, detail?.error || text, {
    cause,
    headers: adviceOf(failure),
    fault: failure.fault?.(name),
    ...(detail?.detail && { detail: detail.detail }),
    ...(detail?.instance && { instance: detail.instance }),
  });
}

function rowOfDetail({ type, code }: ErrorResponse): ErrorName {
  const named = ERROR_TABLE.find((entry) => entry.type === type && entry.code === code);
  return (named ?? errorEntryOfCode(code)).name as ErrorName;
}

function rowOfCode(code: number, method: DescMethod): ErrorName {
  // The route begins with the kind of object that the method is about.
  const [, , resource = ""] = String(getOption(method, http).pattern.value ?? "").split("/");
  const rows = BY_RESOURCE[code];
  return BY_CODE[code] ?? rows?.[resource] ?? rows?.["table"] ?? "Internal";
}

function adviceOf(failure: StatusFailure): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of ADVICE) {
    const value = failure.header(name);
    if (typeof value === "string") headers[name] = value;
  }
  return headers;
}
