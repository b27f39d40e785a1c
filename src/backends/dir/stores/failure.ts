import { type ErrorName, LanceError } from "../../../namespace/errors.ts";
import { RefusedRequest } from "../format/decisive-request.ts";

/** Facts of a failure from the answer of an object store, or from its absence. */
export interface StoreFailure {
  /** HTTP status; undefined without an answer. */
  readonly status: number | undefined;
  /** Word of the service or the system for it, for example `SlowDown` or `ECONNREFUSED`. */
  readonly code: string;
  /** The service's id of the request. */
  readonly requestId?: string | undefined;
}

type Meaning = readonly [pattern: RegExp, name: ErrorName, message: string];

/**
 * By `<code> <status>`; the first pattern that matches decides. S3 uses 503 only for too many requests, and answers a
 * HEAD without a code.
 */
const MEANINGS: readonly Meaning[] = [
  [
    /^(?:CredentialsProviderError|CredentialUnavailableError|(?:AuthenticationRequired|AggregateAuthentication)Error)\b/,
    "ServiceUnavailable",
    "the server has no credentials for the storage of the catalog",
  ],
  [
    /^(?:SlowDown|Throttl\w*|TooManyRequests\w*|RequestLimitExceeded|ServerBusy|rateLimitExceeded)\b| (?:429|503)$/i,
    "Throttling",
    "the storage of the catalog asks for fewer requests",
  ],
  [
    /^(?:NoSuchBucket|ContainerNotFound|ContainerBeingDeleted|AccountIsDisabled)\b/,
    "ServiceUnavailable",
    "the bucket of the catalog does not exist",
  ],
  [
    // A refusal of HEAD, which has no code, or of a request for a token, which may have another status.
    /^(?:RequestTimeTooSkewed|(?:Access|Token|Credentials|Invalid(?:Access|Token|Identity|Authentication)|Signature|Expired|Auth|IDP)\w*|invalid_(?:grant|client)|unauthorized_client)\b| 40[13]$|^Error 400$/i,
    "ServiceUnavailable",
    "the storage of the catalog denies access to the server",
  ],
  [/ 5\d\d$/, "ServiceUnavailable", "catalog storage is failing"],
  [/^RequestTimeout\b| (?:408|-)$/, "ServiceUnavailable", "the storage of the catalog does not answer"],
];

/** Failures of requests that were not sent, or not carried out, by `<code> <status>`. */
const REFUSED =
  /^(?:CredentialsProviderError|CredentialUnavailableError|AuthenticationRequiredError|ECONNREFUSED|ENOTFOUND|EAI_AGAIN) | (?:4\d\d|503)$/;

const RETRY_LATER = { headers: { "retry-after": "1" } };

/**
 * Converts a failure of an object store to an error for clients.
 *
 * Neither the error nor its cause contains what was sent: requests carry credentials.
 */
export function toStoreError(service: string, { status, code, requestId }: StoreFailure): LanceError {
  const said = `${code} ${status ?? "-"}`;
  const cause = new Error(`${service}: ${said}${requestId === undefined ? "" : `, request ${requestId}`}`);
  const [, name, message] = MEANINGS.find(([pattern]) => pattern.test(said)) ?? [];
  if (name === undefined || message === undefined) {
    return new LanceError("Internal", "the storage refused a request; the log has it", { cause });
  }
  const Kind = REFUSED.test(said) ? RefusedRequest : LanceError;
  return new Kind(name, message, { cause, ...(name === "Throttling" && RETRY_LATER) });
}

/** Passes a body on, and throws its failure as the error to which `toError` converts it. */
export async function* withErrors(
  bytes: AsyncIterable<Uint8Array>,
  toError: (thrown: unknown) => unknown,
): AsyncIterable<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw toError(error);
  }
}

/** Whether the request may succeed later. */
export function isTransient({ status, code }: StoreFailure): boolean {
  return status === undefined
    ? !/Credential|Authentication|ENOTFOUND/.test(code)
    : status >= 500 || status === 429 || status === 408 || code === "RequestTimeout";
}
