import type { UpstreamErrorForm } from "../../dialects/upstream.ts";
import { type Call, endErrorOf } from "../../namespace/call/call.ts";
import {
  ERROR_TABLE,
  type ErrorEntry,
  type ErrorName,
  errorEntryNamed,
  LanceError,
  PUBLIC_ERROR_COUNT,
  statusOfType,
  type UpstreamFault,
} from "../../namespace/errors.ts";
import { type FailureKind, UpstreamFailure, type UpstreamResponse } from "./transport/transport.ts";

/** Context for reading an error, in addition to the answer itself. */
export interface ErrorFacts {
  /** Deviations of this kind of upstream in errors. */
  readonly forms: readonly UpstreamErrorForm[];
  /** Full name of the request's type. */
  readonly request: string;
  /** Kind of the path's resource, in its own word. */
  readonly resource: string;
  /** Whether a success has no body, so that an empty 404 means a missing object. */
  readonly asksExistence: boolean;
}

/** Rows for statuses whose body contains no error. */
const BY_STATUS: Readonly<Record<number, ErrorName>> = {
  400: "InvalidInput",
  401: "Unauthenticated",
  403: "PermissionDenied",
  405: "Unsupported",
  406: "Unsupported",
  407: "ServiceUnavailable",
  408: "DeadlineExceeded",
  409: "ConcurrentModification",
  410: "Unsupported",
  412: "ConcurrentModification",
  413: "PayloadTooLarge",
  415: "UnsupportedMediaType",
  416: "RangeNotSatisfiable",
  422: "InvalidInput",
  429: "Throttling",
  500: "Internal",
  501: "Unsupported",
  504: "DeadlineExceeded",
  520: "OutcomeUnknown",
};

const MISSING: Readonly<Record<string, ErrorName>> = {
  namespace: "NamespaceNotFound",
  transaction: "TransactionNotFound",
};

const BY_FAILURE: Readonly<Record<FailureKind, readonly [ErrorName, fault?: UpstreamFault]>> = {
  connect: ["ServiceUnavailable", "unreached"],
  reset: ["ServiceUnavailable", "reset"],
  truncated: ["ServiceUnavailable", "broken"],
  malformed: ["ServiceUnavailable", "broken"],
  oversized: ["ServiceUnavailable", "oversized"],
  "first-byte": ["DeadlineExceeded", "silent"],
  idle: ["DeadlineExceeded", "broken"],
  total: ["DeadlineExceeded", "silent"],
};

/** Errors after which another attempt may succeed. */
const FAULTS: Readonly<Partial<Record<ErrorName, UpstreamFault>>> = {
  ServiceUnavailable: "unavailable",
  Throttling: "throttled",
};

/** Headers that tell a client how to handle an error, or what it could have asked for. */
const ADVICE = ["retry-after", "www-authenticate", "content-range"];

const MAX_TEXT_CHARACTERS = 500;

/** Characters in which the words of a kind of upstream are looked for: the rest may quote what a caller has sent, at any length. */
const WORDS_CHARACTERS = 4096;
const MARKUP = /^\s*<|^text\/html/i;

/**
 * Returns the error that an answer other than a success represents. It never throws.
 *
 * The deviations of the kind of upstream count first, then the body's code, then the error that its `kind`, `type` or
 * `title` names, then the status of a `type` that the specification lists, then the HTTP status.
 */
export function errorOfAnswer(response: UpstreamResponse, facts: ErrorFacts): LanceError {
  const { status, headers } = response;
  const text = response.body.toString("utf8");
  const body = parseBody(text);
  const code = codeOf(body);
  const beginning = text.slice(0, WORDS_CHARACTERS);
  const known = facts.forms.find(
    (form) =>
      form.statuses.includes(status) &&
      form.codes.includes(code) &&
      (form.request ?? facts.request) === facts.request &&
      form.text.test(beginning),
  );
  const named = known?.error ?? (entryOfBody(body, code)?.name as ErrorName | undefined);
  const name =
    named ?? nameOfStatus(response, statusOfType(textOf(body, "type") ?? "") ?? status, text, facts);
  const detail = textOf(body, "detail");
  const instance = single(headers["x-request-id"]) ?? textOf(body, "instance");
  return new LanceError(name, messageOf(body, text, response), {
    headers: adviceOf(headers),
    ...(detail !== undefined && { detail }),
    ...(instance !== undefined && { instance }),
    fault: named === undefined && status === BAD_GATEWAY ? "reset" : faultOf(name, status),
  });
}

/** Status of a proxy whose server has not answered, although it may have carried out the request. */
const BAD_GATEWAY = 502;

/** A redirect is ServiceUnavailable, too, but a retry would be redirected again. */
function faultOf(name: ErrorName, status: number): UpstreamFault | undefined {
  return status < 400 ? undefined : FAULTS[name];
}

/** Returns the error that a failure of the transport represents; anything else passes unchanged. */
export function errorOfFailure(thrown: unknown, call: Call): unknown {
  const ended = endErrorOf(call);
  if (ended !== undefined) return ended;
  if (!(thrown instanceof UpstreamFailure)) return thrown;
  const [name, fault] = BY_FAILURE[thrown.kind];
  return new LanceError(name, thrown.message, { cause: thrown, fault });
}

type Body = Readonly<Record<string, unknown>>;

function parseBody(text: string): Body {
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json !== "object" || json === null) return {};
    // An older shape nests the message one level deeper.
    const { error } = json as Body;
    return typeof error === "object" && error !== null
      ? { error: (error as Body)["message"], ...error }
      : (json as Body);
  } catch {
    return {};
  }
}

function codeOf({ code }: Body): number | undefined {
  return typeof code === "number" && Number.isInteger(code) && code >= 0 ? code : undefined;
}

function entryOfBody(body: Body, code: number | undefined): ErrorEntry | undefined {
  const named = errorEntryNamed(textOf(body, "kind"), textOf(body, "type"), textOf(body, "title"));
  if (code === undefined) return named;
  // Failures of the transport borrow a code and have a name of their own.
  if (named?.code === code) return named;
  return ERROR_TABLE.slice(0, PUBLIC_ERROR_COUNT).find((entry) => entry.code === code);
}

function nameOfStatus(
  { headers }: UpstreamResponse,
  status: number,
  text: string,
  facts: ErrorFacts,
): ErrorName {
  if (status !== 404)
    return BY_STATUS[status] ?? (status < 500 && status >= 400 ? "InvalidInput" : "ServiceUnavailable");
  const silent = text === "" && !facts.asksExistence;
  // A server without the route answers with an empty body, or with an HTML page.
  if (silent || MARKUP.test(text) || MARKUP.test(single(headers["content-type"]) ?? "")) return "Unsupported";
  return MISSING[facts.resource] ?? "TableNotFound";
}

function messageOf(body: Body, text: string, { status, headers }: UpstreamResponse): string {
  const said =
    textOf(body, "error") ?? textOf(body, "message") ?? textOf(body, "detail") ?? textOf(body, "title");
  if (said !== undefined) return said;
  const type = single(headers["content-type"]) ?? "";
  const plain = text !== "" && type.startsWith("text/plain") && !MARKUP.test(text);
  const shown = plain ? `: ${text.slice(0, MAX_TEXT_CHARACTERS)}` : "";
  return `the upstream catalog answered with HTTP status ${status}${shown}`;
}

function textOf(body: Body, name: string): string | undefined {
  const value = body[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function adviceOf(headers: UpstreamResponse["headers"]): Record<string, string> {
  const advice: Record<string, string> = {};
  for (const name of ADVICE) {
    const value = single(headers[name]);
    if (value !== undefined) advice[name] = value;
  }
  return advice;
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}
