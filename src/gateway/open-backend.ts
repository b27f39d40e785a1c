import { readFile } from "node:fs/promises";
import type { Logger } from "pino";
import type { ReadAhead } from "../backends/dir/operations/read/read-ahead.ts";
import { type BackendKind, UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options.ts";
import { storageOptionsOf } from "../config/storage-options.ts";
import type { NoteDecision } from "../namespace/decisions.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import { required, upstreamIdentityOf } from "./upstream-identity.ts";

/**
 * Opens the backend that options describe. Only the kind that is asked for is loaded.
 *
 * @param readAhead the memory for query results that are open. Default: each directory has its own.
 * @param noteDecision counts decisions about an upstream that are no call's own. Default: nobody does.
 * @throws Error with one clear line, when it cannot be had; UsageError, when an option is missing.
 */
export function openBackend(
  options: ServeOptions,
  log: Logger,
  readAhead?: ReadAhead,
  noteDecision: NoteDecision = () => {},
): Promise<Backend> {
  return KINDS[options.backend](options, { log, readAhead, noteDecision });
}

/**
 * Sets variables that the engine reads once, when it is loaded; those that the user has set stay. Its warnings go past the
 * gateway's log, so that only errors are shown.
 */
export function prepareEngine(): void {
  process.env["LANCEDB_LOG"] ??= "error";
  // How far a scan reads ahead of its reader, in bytes; the engine's own default is 2 GiB.
  process.env["LANCE_DEFAULT_IO_BUFFER_SIZE"] ??= String(16 * 1024 ** 2);
}

interface Surroundings {
  readonly log: Logger;
  readonly readAhead: ReadAhead | undefined;
  readonly noteDecision: NoteDecision;
}

type Open = (options: ServeOptions, surroundings: Surroundings) => Promise<Backend>;

const KINDS: Readonly<Record<BackendKind, Open>> = {
  async dir(options, { log, readAhead }) {
    const { createDirectoryBackend } = await import("../backends/dir/index.ts");
    return createDirectoryBackend({
      ...options,
      storageOptions: storageOptionsOf(options.root, options.storageOptions, process.env),
      tableIdleMs: options.idleSeconds * 1000,
      maintenance: !options.noMaintenance,
      readAhead,
      log,
    });
  },

  async rest(options, { log, noteDecision }) {
    const { createRestBackend } = await import("../backends/rest/index.ts");
    const { uris, upstreamConnectMs: connectMs, upstreamTimeoutMs: totalMs } = options;
    if (uris.length === 0) required(undefined, "--uri");
    return createRestBackend({
      ...upstreamOptions(options),
      noteDecision,
      uri: uris,
      tls: await readTls(options),
      timeLimits: { ...timeLimitsOf(options), connectMs, totalMs },
      dialect: options.upstreamDialect,
      delimiter: options.upstreamDelimiter,
      log,
    });
  },

  async grpc(options, { log, noteDecision }) {
    const { createGrpcBackend } = await import("../backends/grpc/index.ts");
    const tls = await readTls(options);
    const encrypted = options.upstreamTls || Object.values(tls).some((value) => value !== undefined);
    if (options.addresses.length === 0) required(undefined, "--address");
    return createGrpcBackend({
      ...upstreamOptions(options),
      noteDecision,
      addresses: options.addresses,
      tls: encrypted ? tls : undefined,
      connectMs: options.upstreamConnectMs,
      timeLimits: timeLimitsOf(options),
      timeoutMs: options.upstreamTimeoutMs,
      log,
    });
  },
};

function timeLimitsOf({ upstreamFirstByteMs: firstByteMs, upstreamIdleMs: idleMs }: ServeOptions) {
  return { firstByteMs, idleMs };
}

function upstreamOptions(options: ServeOptions) {
  const { headers, passHeaders } = options;
  return {
    headers: Object.fromEntries(headers),
    passHeaders: passHeaders.length === 0 ? undefined : passHeaders,
    identity: upstreamIdentityOf(options, process.env),
    maxCalls: options.upstreamMaxCalls,
    maxWaiting: options.upstreamMaxWaiting,
    cache: { ttlMs: options.upstreamCacheMs, maxEntries: options.upstreamCacheEntries },
    resilience: {
      retries: options.upstreamRetries,
      retryShare: options.upstreamRetryPercent / 100,
      hedgeAfterMs: options.upstreamHedgeMs,
      circuitFailures: options.upstreamCircuitFailures,
      circuitOpenMs: options.upstreamCircuitOpenMs,
      silenceMs: options.upstreamSilenceMs,
    },
  };
}

async function readTls(options: ServeOptions) {
  const { upstreamCa, upstreamCert, upstreamKey, upstreamServerName: serverName } = options;
  if ((upstreamCert === undefined) !== (upstreamKey === undefined)) {
    throw new UsageError("--upstream-cert and --upstream-key go together");
  }
  const [ca, cert, key] = await Promise.all([upstreamCa, upstreamCert, upstreamKey].map(readPem));
  return { ca, cert, key, serverName };
}

async function readPem(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} cannot be read: ${error.code ?? error.message}`);
  });
  if (!text.includes("-----BEGIN ")) throw new UsageError(`${file} is not in PEM`);
  return text;
}
