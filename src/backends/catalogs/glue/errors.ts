import type { GlueServiceException } from "@aws-sdk/client-glue";
import { type ErrorName, LanceError, type UpstreamFault } from "../../../namespace/errors.ts";

/** Errors for an entity that is missing, and for one that exists. */
export interface Missing {
  readonly notFound: readonly [name: ErrorName, message: string];
  readonly exists?: readonly [name: ErrorName, message: string];
}

type Meaning = readonly [name: ErrorName, message: string | undefined, fault?: UpstreamFault];

const REFUSED: Meaning = ["ServiceUnavailable", "the upstream catalog refused the gateway's credentials"];
const UNREACHED: Meaning = ["ServiceUnavailable", "the upstream catalog cannot be reached", "unreached"];
const LOST: Meaning = [
  "ServiceUnavailable",
  "the upstream catalog closed the connection before it answered",
  "reset",
];
const THROTTLED: Meaning = ["Throttling", "the upstream catalog asks for fewer requests", "throttled"];
const SILENT: Meaning = ["DeadlineExceeded", "the upstream catalog did not answer in time", "silent"];

/**
 * Meanings of the service's and the library's names of errors. A message of undefined passes the service's own on, for errors about what
 * the caller has sent; the others may name the gateway's role, key or address.
 */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  InvalidInputException: ["InvalidInput", undefined],
  ValidationException: ["InvalidInput", undefined],
  ConcurrentModificationException: ["ConcurrentModification", undefined],
  VersionMismatchException: ["ConcurrentModification", undefined],
  ResourceNumberLimitExceededException: ["ServiceUnavailable", "the upstream catalog has reached a quota"],
  AccessDeniedException: ["PermissionDenied", "the upstream catalog does not allow this to the gateway"],
  UnrecognizedClientException: REFUSED,
  InvalidSignatureException: REFUSED,
  IncompleteSignatureException: REFUSED,
  InvalidClientTokenId: REFUSED,
  ExpiredTokenException: REFUSED,
  MissingAuthenticationTokenException: REFUSED,
  CredentialsProviderError: ["ServiceUnavailable", "the gateway has no AWS credentials"],
  ThrottlingException: THROTTLED,
  TooManyRequestsException: THROTTLED,
  OperationTimeoutException: SILENT,
  TimeoutError: SILENT,
  ECONNREFUSED: UNREACHED,
  ENOTFOUND: UNREACHED,
  EAI_AGAIN: UNREACHED,
  EHOSTUNREACH: UNREACHED,
  ECONNRESET: LOST,
  EPIPE: LOST,
};

/** Failure inside the service, after which a change may have been made. */
const FAILED: Meaning = ["ServiceUnavailable", "the upstream catalog failed", "reset"];
/** An answer that is not the service's. */
const BROKEN: Meaning = ["ServiceUnavailable", "the answer of the upstream catalog cannot be read", "broken"];

/** A refusal with a name that is not listed. Its own message is for the log alone. */
const UNKNOWN: Meaning = ["InvalidInput", "the upstream catalog refused the request"];

/** Returns the error for a failure of the library. Its cause, which is logged, has the service's name of the error, and its message if nothing else tells what it was. */
export function errorOfGlue(
  error: Partial<GlueServiceException> & { readonly code?: string },
  { notFound, exists }: Missing,
): LanceError {
  if (error instanceof LanceError) return error;
  const { name = "Error", code, message = "", $metadata } = error;
  const status = $metadata?.httpStatusCode;
  const meaning = MEANINGS[code ?? ""] ?? MEANINGS[name] ?? byStatus(status);
  const details = meaning === UNKNOWN ? `: ${message}` : "";
  const cause = new Error(`Glue: ${code ?? name} ${status ?? "-"}${details}`);
  const instance = $metadata?.requestId;
  const options = { cause, ...(instance !== undefined && { instance }) };
  if (name === "EntityNotFoundException") return new LanceError(...notFound, options);
  if (name === "AlreadyExistsException" && exists !== undefined) return new LanceError(...exists, options);
  // The library names a lost connection a TimeoutError, and its code tells what it was.
  const [kind, text, fault] = meaning;
  return new LanceError(kind, text ?? message, { ...options, fault });
}

function byStatus(status: number | undefined): Meaning {
  if (status === undefined) return LOST;
  if (status === 429) return THROTTLED;
  if (status === 503) return ["ServiceUnavailable", "the upstream catalog is unavailable", "unavailable"];
  if (status === 403 || status === 401) return REFUSED;
  if (status >= 500) return FAILED;
  return status >= 400 ? UNKNOWN : BROKEN;
}
