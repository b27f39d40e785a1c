import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { type ErrorResponse, ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import { type Call, endErrorOf } from "../../namespace/call/call.ts";
import { type ErrorName, LanceError, type UpstreamFault } from "../../namespace/errors.ts";
import { errorOfStatus } from "../../namespace/status-error.ts";
import { ANSWERS_CROWDED } from "../resilience/answer-budget.ts";

const UNREACHED = "the upstream catalog cannot be reached";
const BROKEN = "the answer of the upstream catalog broke off or cannot be read";

/** Texts for failures for which the library's own text names addresses. */
const TEXTS: Readonly<Record<number, string>> = {
  [status.CANCELLED]: "the upstream catalog broke the call off",
  [status.DEADLINE_EXCEEDED]: "the upstream catalog did not answer in time",
  [status.UNAVAILABLE]: UNREACHED,
};

/**
 * The library's own errors, for calls that it could not start and for invalid answers. It gives them the codes of an
 * upstream's errors, so only its words distinguish them.
 */
const OWN_WORDS: readonly { code: number; words: RegExp; text: string; fault?: UpstreamFault }[] = [
  {
    code: status.UNAVAILABLE,
    words: /No connection established|^Name resolution failed|^Stream refused by server/,
    text: UNREACHED,
    fault: "unreached",
  },
  {
    code: status.UNAVAILABLE,
    words: /^Connection dropped|ECONNRESET|ETIMEDOUT/,
    text: "the upstream catalog closed the connection before it answered",
    fault: "reset",
  },
  // The code of a reset, by which a peer ends streams or a connection that it finds too busy; calls may have been carried out.
  { code: status.RESOURCE_EXHAUSTED, words: /^Bandwidth exhausted/, text: BROKEN, fault: "reset" },
  { code: status.INTERNAL, words: /^Received RST_STREAM/, text: BROKEN, fault: "reset" },
  { code: status.UNKNOWN, words: /^Received HTTP status code 200/, text: BROKEN, fault: "reset" },
  { code: status.INTERNAL, words: /^Response message parsing error/, text: BROKEN, fault: "broken" },
  {
    code: status.UNIMPLEMENTED,
    words: /^(?:No message received|Too many responses received)/,
    text: BROKEN,
    fault: "broken",
  },
  {
    code: status.RESOURCE_EXHAUSTED,
    words: /^Received message larger than max/,
    text: BROKEN,
    fault: "oversized",
  },
  {
    code: status.RESOURCE_EXHAUSTED,
    words: new RegExp(`^${ANSWERS_CROWDED}$`),
    text: ANSWERS_CROWDED,
    fault: "oversized",
  },
];

/** Errors of the upstream after which another attempt may succeed. */
const FAULTS: Readonly<Partial<Record<ErrorName, UpstreamFault>>> = {
  ServiceUnavailable: "unavailable",
  Throttling: "throttled",
};

/** The library's words for the answer of a proxy whose server has not answered, although it may have carried out the call. */
const OF_PROXY = /^Received HTTP status code 50[24]$/;

/** How far a call came before it failed. */
export interface Progress {
  /** Whether the answer had started. */
  readonly begun?: boolean;
  /** Whether the head of the answer had come. Default: if the answer had started. */
  readonly headed?: boolean;
  /** Whether a body that can be read only once was being sent. */
  readonly bodySent?: boolean;
}

/**
 * Returns the error that a client sees for a failed call of the upstream.
 *
 * The details of the status count first, then the status. The library's own errors, about connections and invalid
 * answers, are recognised by their words. An abort of the client's call overrides everything.
 */
export function upstreamError(thrown: unknown, call: Call, progress: Progress = {}): LanceError {
  if (thrown instanceof LanceError) return thrown;
  const ended = endErrorOf(call);
  if (ended !== undefined) return ended;
  if (!isServiceError(thrown)) {
    return new LanceError("Internal", "cannot read the upstream catalog's response", { cause: thrown });
  }
  const { code, details, metadata } = thrown;
  const detail = detailOf(metadata);
  const own =
    detail === undefined
      ? OWN_WORDS.find((words) => words.code === code && words.words.test(details))
      : undefined;
  if (own !== undefined) {
    const { text, fault } = own;
    const { begun = false, headed = begun } = progress;
    // Upstreams say the same of requests that they refuse, in place of an answer.
    if (fault === "oversized" && !headed)
      return new LanceError("PayloadTooLarge", "the upstream catalog rejected the request as too large", {
        cause: thrown,
      });
    return new LanceError("ServiceUnavailable", text, { cause: thrown, fault: faultAfter(fault, progress) });
  }
  const text = (detail === undefined && TEXTS[code]) || details || "the upstream catalog failed";
  const isProxys = code === status.UNAVAILABLE && OF_PROXY.test(details);
  const faultOf = (name: ErrorName) => (isProxys ? "reset" : FAULTS[name]);
  return errorOfStatus(
    {
      code,
      text,
      detail,
      header: (name) => metadata?.get(name)[0]?.toString(),
      fault: code === status.CANCELLED ? () => faultAfter("reset", progress) : faultOf,
      cause: thrown,
    },
    call.method,
  );
}

/** Returns the error of a call of which nothing has reached the upstream. */
export function unreached(cause: unknown): LanceError {
  return new LanceError("ServiceUnavailable", UNREACHED, { cause, fault: "unreached" });
}

/** Returns the error that the library's client makes of a status. */
export function statusError(code: status, details: string, metadata = new Metadata()): ServiceError {
  return Object.assign(new Error(`${code} ${status[code]}: ${details}`), { code, details, metadata });
}

/** Adjusts a fault to what had been sent and received by then. */
function faultAfter(
  fault: UpstreamFault | undefined,
  { begun = false, bodySent = false }: Progress,
): UpstreamFault | undefined {
  if (fault === undefined || fault === "oversized") return fault;
  if (begun) return "broken";
  return bodySent && fault === "unreached" ? "reset" : fault;
}

function isServiceError(thrown: unknown): thrown is ServiceError {
  return (
    thrown instanceof Error && "code" in thrown && typeof thrown.code === "number" && "details" in thrown
  );
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
    // Malformed details are ignored; the status still counts.
  }
  return undefined;
}
