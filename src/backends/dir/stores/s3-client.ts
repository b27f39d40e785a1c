import type { S3Client, S3ClientConfig } from "@aws-sdk/client-s3";
import { LanceError } from "../../../namespace/errors.ts";
import { loadLibrary } from "../../load-library.ts";
import { isTransient, type StoreFailure, toStoreError } from "./failure.ts";
import { createOptionReader, type StorageOptions } from "./storage-options.ts";
import { createTimeLimits, type TimeLimits } from "./time-limits.ts";

/** The library and what sends with it. */
export interface S3Access {
  readonly sdk: typeof import("@aws-sdk/client-s3");
  readonly client: S3Client;
  /** Sends each request once, for those whose repetition has to be seen. */
  readonly single: S3Client;
  readonly limits: TimeLimits;
  /** How the engine gets to the same storage. */
  readonly engineOptions: StorageOptions;
}

/** The library repeats what has failed for a moment so often at most, in all. */
const MAX_ATTEMPTS = 4;

/** How long a connection and a whole answer may take, in milliseconds. */
const CONNECT_TIMEOUT = 5_000;
const REQUEST_TIMEOUT = 30_000;

const OPTION_PREFIXES = ["aws_", "s3_"];

/** Connections at a time. */
const MAX_SOCKETS = 128;

const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/**
 * Connects to an S3 service. Nothing is sent yet.
 *
 * Credentials that are no options come from where the AWS tools find them: environment, profile, web identity,
 * container role, instance metadata.
 *
 * @throws Error with one clear line for a missing package or an option that cannot be understood
 */
export async function openS3(options: StorageOptions): Promise<S3Access> {
  const sdk = await loadLibrary("s3://", "@aws-sdk/client-s3", () => import("@aws-sdk/client-s3"));
  const config = toConfig(options);
  const client = new sdk.S3Client(config);
  const { requestHandler, credentials } = client.config;
  const single = new sdk.S3Client({ ...config, requestHandler, credentials, maxAttempts: 1 });
  await client.config.region().catch((cause: unknown) => {
    throw new Error("s3:// needs a region: the storage option aws_region, or AWS_REGION", { cause });
  });
  const { endpoint } = config;
  const engineOptions = typeof endpoint === "string" ? { ...options, aws_endpoint: endpoint } : options;
  const limits = createTimeLimits(requestTimeoutOf(options));
  return { sdk, client, single, limits, engineOptions };
}

function requestTimeoutOf(options: StorageOptions): number {
  return createOptionReader(options, OPTION_PREFIXES).duration("timeout") ?? REQUEST_TIMEOUT;
}

/** The options as the AWS library wants them. */
export function toConfig(options: StorageOptions): S3ClientConfig {
  const read = createOptionReader(options, OPTION_PREFIXES);
  const endpoint = read.text("endpoint", "endpoint_url", "endpoint_url_s3");
  if (endpoint?.startsWith("http://") && read.flag("allow_http") !== true) {
    throw new Error("an endpoint without TLS needs the storage option allow_http=true");
  }
  const accessKeyId = read.text("access_key_id");
  const secretAccessKey = read.text("secret_access_key");
  const sessionToken = read.text("session_token", "token");
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) {
    throw new Error("the storage options need both aws_access_key_id and aws_secret_access_key, or neither");
  }
  return {
    // The engine takes the same region for granted where none is said, as an endpoint of one's own has none.
    region: read.text("region", "default_region") ?? (endpoint === undefined ? undefined : "us-east-1"),
    endpoint,
    // As in the engine: the path names the bucket, unless the options say that the host does.
    forcePathStyle: !(read.flag("virtual_hosted_style_request") ?? endpoint === undefined),
    credentials:
      accessKeyId === undefined || secretAccessKey === undefined
        ? undefined
        : { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
    maxAttempts: (read.integer("client_max_retries") ?? MAX_ATTEMPTS - 1) + 1,
    // Checksums beyond what S3 asks for are unknown to many that speak its language.
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

interface SdkError {
  readonly name?: string;
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string };
}

/** What an error of the library says. */
export function failureOf(thrown: unknown): StoreFailure {
  const { name, code, $metadata } = thrown as SdkError;
  return {
    status: $metadata?.httpStatusCode,
    code: code ?? name ?? "Error",
    requestId: $metadata?.requestId,
  };
}

/** Whether an error says that there is no such object; a missing bucket is another matter. */
export function isMissing(thrown: unknown): boolean {
  const { status, code } = failureOf(thrown);
  return status === 404 && code !== "NoSuchBucket";
}

/** Whether an error may pass, and leaves open what has happened. */
export function isPassing(thrown: unknown): boolean {
  return isTransient(failureOf(thrown));
}

/** An error of the library as one for clients. */
export function toS3Error(thrown: unknown): unknown {
  if (thrown instanceof LanceError || (thrown as Error).name === "AbortError") return thrown;
  // A fault of this program has neither a status nor one of the library's names.
  return thrown instanceof TypeError ? thrown : toStoreError("S3", failureOf(thrown));
}
