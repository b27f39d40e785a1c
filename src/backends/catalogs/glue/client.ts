import type { Readable } from "node:stream";
import type { GlueClient, GlueServiceException } from "@aws-sdk/client-glue";
import type { Call } from "../../../namespace/call/call.ts";
import { type ErrorName, LanceError, type UpstreamFault } from "../../../namespace/errors.ts";
import { signalOf } from "../../../runtime/late-signal.ts";
import { loadLibrary } from "../../load-library.ts";
import { createResilience } from "../../resilience/create-resilience.ts";
import { Gate } from "../../resilience/gate.ts";
import type { Repeatable, ResilienceOptions } from "../../resilience/resilience.ts";

/** Options of the connection to AWS Glue. */
export interface GlueClientOptions {
  /** Endpoint of a service other than that of AWS. Default: that of the region. */
  readonly endpoint?: string | undefined;
  /** Default: `AWS_REGION`, or that of the profile. */
  readonly region?: string | undefined;
  /** Default: where the tools of AWS find them: environment, profile, web identity, container role, instance metadata. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
  /** Maximum number of calls in flight. Default: 64. */
  readonly maxCalls?: number | undefined;
  /** Maximum number of calls that wait. Default: 1,000. */
  readonly maxWaiting?: number | undefined;
  readonly timeLimits?: { readonly connectMs?: number; readonly firstByteMs?: number } | undefined;
  readonly resilience: ResilienceOptions;
}

type Sdk = typeof import("@aws-sdk/client-glue");

/** Sends commands to AWS Glue. */
export interface Glue {
  readonly sdk: Sdk;
  /** Host of the service, or its name with the region. */
  readonly host: string;
  /**
   * Sends a command that changes nothing, and may therefore be sent again.
   *
   * @param missing the errors for an entity that does not exist, and for one that does
   * @throws LanceError
   */
  read: SendGlue;
  /** Sends a command that changes something: again only if the service has not received it. */
  change: SendGlue;
  /** Whether the service answers now. */
  ready(catalogId: string | undefined): Promise<boolean>;
  close(): void;
}

/** Sends a command once. */
type Command<Output> = (
  client: GlueClient,
  options: { readonly abortSignal: AbortSignal },
) => Promise<Output>;

type SendGlue = <Output>(command: Command<Output>, missing: Missing, call: Call) => Promise<Output>;

/** Largest answer, in bytes: it is parsed in a single step. */
const MAX_ANSWER_BYTES = 4 * 1024 ** 2;

const CONNECT_MS = 5_000;
const ANSWER_MS = 30_000;
const READY_MS = 5_000;

const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/**
 * Opens a client of AWS Glue, without a request.
 *
 * @throws Error with a single line for a missing package or a missing region
 */
export async function openGlue(options: GlueClientOptions): Promise<Glue> {
  const { endpoint, credentials, maxCalls = 64, maxWaiting = 1_000 } = options;
  const { connectMs = CONNECT_MS, firstByteMs = ANSWER_MS } = options.timeLimits ?? {};
  const user = "--backend glue";
  const sdk = await loadLibrary(user, "@aws-sdk/client-glue", () => import("@aws-sdk/client-glue"));
  const client = new sdk.GlueClient({
    ...(endpoint !== undefined && { endpoint }),
    ...(options.region !== undefined && { region: options.region }),
    ...(credentials !== undefined && { credentials }),
    // The gateway's own retries know what a repetition may change.
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: connectMs,
      requestTimeout: firstByteMs,
      throwOnRequestTimeout: true,
      socketTimeout: firstByteMs,
      httpAgent: { maxSockets: maxCalls },
      httpsAgent: { maxSockets: maxCalls },
      logger: quiet,
    },
    logger: quiet,
  });
  const region = await client.config.region().catch((cause: unknown) => {
    throw new Error("--backend glue needs a region: --glue-region or AWS_REGION", { cause });
  });
  limitAnswers(client);
  const name = endpoint === undefined ? `glue.${region}` : new URL(endpoint).host;
  const upstream = createResilience([{ target: client, name }], options.resilience);
  const gate = new Gate({ places: maxCalls, maxWaiting, name: "upstream catalog" });

  const sending = (repeatable: Repeatable): SendGlue =>
    function send(command, missing, call) {
      return upstream.run(call, repeatable, async (target, ending, progress) => {
        await gate.enter(ending, undefined, call);
        try {
          progress.onSent();
          return await command(target, { abortSignal: signalOf(ending) });
        } catch (error) {
          if (ending.aborted) throw ending.reason;
          throw errorOfGlue(error as Partial<GlueServiceException>, missing);
        } finally {
          gate.leave();
        }
      });
    };

  return {
    sdk,
    host: name,
    read: sending("parallel"),
    change: sending("unsent"),
    async ready(catalogId) {
      const command = new sdk.GetDatabasesCommand({ CatalogId: catalogId, MaxResults: 1 });
      try {
        await client.send(command, { abortSignal: AbortSignal.timeout(READY_MS) });
        return true;
      } catch (error) {
        const { httpStatusCode: status = 500 } = (error as Partial<GlueServiceException>).$metadata ?? {};
        return status < 500;
      }
    },
    close: () => client.destroy(),
  };
}

/** Makes a client collect its answers up to a size; its own way has no limit. */
function limitAnswers(client: GlueClient): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const response = result.response as { body: unknown };
      response.body = await collected(response.body as Readable);
      return result;
    },
    // Nearest to the connection.
    { step: "deserialize", priority: "low" },
  );
}

async function collected(body: Readable): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    size += piece.byteLength;
    // Leaving the loop ends the connection.
    if (size > MAX_ANSWER_BYTES)
      throw new LanceError("ServiceUnavailable", "the answer of the upstream catalog is too large", {
        fault: "oversized",
      });
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

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
function errorOfGlue(
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
