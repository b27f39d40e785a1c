import type { S3Client, S3ClientConfig } from "@aws-sdk/client-s3";
import { expiryOf } from "../../../../namespace/credential-options.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { loadLibrary } from "../../../load-library.ts";
import { isTransient, type StoreFailure, toStoreError } from "../failure.ts";
import {
  clientOptionsOf,
  createOptionReader,
  type RenewOptions,
  type StorageOptions,
} from "../storage-options.ts";
import { createTimeLimits, type TimeLimits } from "../time-limits.ts";
import { limitAnswers } from "./answers.ts";

/** The library and its clients. */
export interface S3Access {
  readonly sdk: typeof import("@aws-sdk/client-s3");
  readonly client: S3Client;
  /** Sends each request once, for requests whose retries must be visible. */
  readonly single: S3Client;
  /** Makes the attempts that remain after a first one; undefined if there are none. */
  readonly rest: S3Client | undefined;
  readonly limits: TimeLimits;
  /** Options with which the engine reaches the storage. */
  readonly engineOptions: StorageOptions;
  /** Options with which clients reach the storage; see {@link clientOptionsOf}. */
  readonly clientOptions: StorageOptions;
}

/** Maximum number of attempts of the library after transient failures. */
const MAX_ATTEMPTS = 4;

/** Longest durations of a connection and of a whole answer, in milliseconds. */
const CONNECT_TIMEOUT = 5_000;
const REQUEST_TIMEOUT = 30_000;

const OPTION_PREFIXES = ["aws_", "s3_"];

/** Maximum number of connections. */
const MAX_SOCKETS = 128;

const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/**
 * Connects to an S3 service, without a request.
 *
 * Credentials that are not options come from where the AWS tools find them: environment, profile, web identity,
 * container role, instance metadata.
 *
 * @param renew returns the options of the moment, whose credentials replace those of `options`. Default: they stay
 * @throws Error with a single line for a missing package or an invalid option
 */
export async function openS3(options: StorageOptions, renew?: RenewOptions): Promise<S3Access> {
  const sdk = await loadLibrary("s3://", "@aws-sdk/client-s3", () => import("@aws-sdk/client-s3"));
  const config: S3ClientConfig = {
    ...toConfig(options),
    ...(renew !== undefined && { credentials: () => renewedBy(renew) }),
  };
  const limits = createTimeLimits(requestTimeoutOf(options));
  const client = limitAnswers(new sdk.S3Client(config), limits);
  const { requestHandler, credentials } = client.config;
  const withAttempts = (maxAttempts: number) => {
    const other = new sdk.S3Client({ ...config, requestHandler, credentials, maxAttempts });
    shareClock(client.config, other.config);
    return limitAnswers(other, limits);
  };
  const single = withAttempts(1);
  const attempts = await client.config.maxAttempts();
  const rest = attempts > 1 ? withAttempts(attempts - 1) : undefined;
  const region = await client.config.region().catch((cause: unknown) => {
    throw new Error("s3:// needs a region: the storage option aws_region, or AWS_REGION", { cause });
  });
  const { endpoint } = config;
  const engineOptions = typeof endpoint === "string" ? { ...options, aws_endpoint: endpoint } : options;
  const clientOptions = clientOptionsOf("s3", { ...engineOptions, aws_region: region });
  return { sdk, client, single, rest, limits, engineOptions, clientOptions };
}

/**
 * Makes a client use the difference of clocks that another one has found. Each finds it by a refusal, which a client without
 * repetitions would pass on.
 */
function shareClock(from: S3Client["config"], to: S3Client["config"]): void {
  Object.defineProperty(to, "systemClockOffset", {
    get: () => from.systemClockOffset,
    set(offset: number) {
      from.systemClockOffset = offset;
    },
  });
}

function requestTimeoutOf(options: StorageOptions): number {
  return createOptionReader(options, OPTION_PREFIXES).duration("timeout") ?? REQUEST_TIMEOUT;
}

/** Converts the options to those of the AWS library. */
export function toConfig(options: StorageOptions): S3ClientConfig {
  const read = createOptionReader(options, OPTION_PREFIXES);
  const endpoint = read.text("endpoint", "endpoint_url", "endpoint_url_s3");
  if (endpoint?.startsWith("http://") && read.flag("allow_http") !== true) {
    throw new Error("an endpoint without TLS needs the storage option allow_http=true");
  }
  return {
    // The engine's default region, for example for an endpoint without one.
    region: read.text("region", "default_region") ?? (endpoint === undefined ? undefined : "us-east-1"),
    endpoint,
    // As in the engine: the path names the bucket, unless the options say that the host does.
    forcePathStyle: !(read.flag("virtual_hosted_style_request") ?? endpoint === undefined),
    credentials: credentialsIn(options),
    maxAttempts: (read.integer("client_max_retries") ?? MAX_ATTEMPTS - 1) + 1,
    // Many compatible services do not know checksums beyond those that S3 requires.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      connectionTimeout: read.duration("connect_timeout") ?? CONNECT_TIMEOUT,
      requestTimeout: requestTimeoutOf(options),
      throwOnRequestTimeout: true,
      socketTimeout: requestTimeoutOf(options),
      httpAgent: { maxSockets: MAX_SOCKETS },
      httpsAgent: { maxSockets: MAX_SOCKETS },
      logger: quiet,
    },
    ...(read.flag("skip_signature") === true && {
      signer: { sign: async (request) => request },
      credentials: { accessKeyId: "anonymous", secretAccessKey: "anonymous" },
    }),
    logger: quiet,
  };
}

/** Returns the credentials among options; undefined if there are none. */
function credentialsIn(options: StorageOptions) {
  const read = createOptionReader(options, OPTION_PREFIXES);
  const accessKeyId = read.text("access_key_id");
  const secretAccessKey = read.text("secret_access_key");
  const sessionToken = read.text("session_token", "token");
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) {
    throw new Error("the storage options need both aws_access_key_id and aws_secret_access_key, or neither");
  }
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
}

/** Returns credentials with their end, before which the library asks again. */
async function renewedBy(renew: RenewOptions) {
  const options = await renew();
  const credentials = credentialsIn(options);
  if (credentials === undefined) throw new Error("the renewed storage options have no credentials");
  const ends = expiryOf(options);
  return { ...credentials, ...(ends !== undefined && { expiration: new Date(ends) }) };
}

interface SdkError {
  readonly name?: string;
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string };
}

/** Returns the facts of a library's error. */
export function failureOf(thrown: unknown): StoreFailure {
  const { name, code, $metadata } = thrown as SdkError;
  return {
    status: $metadata?.httpStatusCode,
    code: code ?? name ?? "Error",
    requestId: $metadata?.requestId,
  };
}

/** Whether an error means a missing object; a missing bucket is another matter. */
export function isMissing(thrown: unknown): boolean {
  const { status, code } = failureOf(thrown);
  return status === 404 && code !== "NoSuchBucket";
}

/** Whether an error is transient, and leaves the outcome open. */
export function isPassing(thrown: unknown): boolean {
  return isTransient(failureOf(thrown));
}

/** Whether another attempt may succeed, also if this one failed on the way. */
export function mayRepeat(thrown: unknown): boolean {
  const { status, code } = failureOf(thrown);
  if (status === undefined) return !(thrown instanceof TypeError || thrown instanceof LanceError);
  return isTransient({ status, code });
}

/** Whether the service asks for fewer requests. */
export function isThrottled(thrown: unknown): boolean {
  const { status, code } = failureOf(thrown);
  return status === 429 || status === 503 || code === "SlowDown";
}

/** Converts an error of the library to one for clients. */
export function toS3Error(thrown: unknown): unknown {
  if (thrown instanceof LanceError || (thrown as Error).name === "AbortError") return thrown;
  // A defect of this program has neither a status nor a name of the library.
  return thrown instanceof TypeError ? thrown : toStoreError("S3", failureOf(thrown));
}

/** Returns the result of a request whose errors are converted to those for clients. */
export function known<T>(request: Promise<T>): Promise<T> {
  return request.catch((error: unknown) => {
    throw toS3Error(error);
  });
}
