import type { DescMethod } from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { ErrorResponse } from "../gen/lance/namespace/v1/common_pb.ts";
import {
  type ErrorName,
  errorEntryNamed,
  errorEntryOfCode,
  LanceError,
  type UpstreamFault,
} from "./errors.ts";
import { optionOf } from "./option.ts";

/** Rows for gRPC codes of servers, and of proxies in front of them, that carry no details. */
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
  15: "DataLoss",
  16: "Unauthenticated",
};

/** Rows of codes whose meaning depends on the resource. */
const BY_RESOURCE: Readonly<Record<number, Readonly<Record<string, ErrorName>>>> = {
  5: { namespace: "NamespaceNotFound", table: "TableNotFound", transaction: "TransactionNotFound" },
  6: { namespace: "NamespaceAlreadyExists", table: "TableAlreadyExists" },
};

/** Metadata that tells a client how to handle an error. */
const ADVICE = ["retry-after", "www-authenticate", "allow"];

/** Failure of a call over gRPC or Connect. */
export interface StatusFailure {
  /** Numeric gRPC code, which is Connect's too. */
  readonly code: number;
  /** Text of the status. */
  readonly text: string;
  /** Details of the status, if they are an error of the contract. */
  readonly detail: ErrorResponse | undefined;
  /** Returns a value of the answer's metadata. */
  header(name: string): string | null | undefined;
  /** Returns what an error of a row reveals about the upstream. Default: nothing. */
  fault?(name: ErrorName): UpstreamFault | undefined;
  readonly cause: unknown;
}

/**
 * Returns the error that a failed call over gRPC or Connect represents.
 *
 * The details of the status count first: the row that their `kind` or `type` names, then that of their code. Without details,
 * the code of the status decides; for missing or existing objects, the method's resource decides.
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

function rowOfDetail({ kind, type, code }: ErrorResponse): ErrorName {
  const named = errorEntryNamed(kind, type);
  return (named?.code === code ? named : errorEntryOfCode(code)).name as ErrorName;
}

function rowOfCode(code: number, method: DescMethod): ErrorName {
  // The route begins with the kind of the method's resource.
  const [, , resource = ""] = String(optionOf(method, http).pattern.value ?? "").split("/");
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
