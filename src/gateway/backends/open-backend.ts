import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import type { BucketCache } from "../../backends/dir/cache/join-cache.ts";
import type { Turns } from "../../backends/dir/concurrency/turns.ts";
import type { ReadAhead } from "../../backends/dir/operations/read/read-ahead.ts";
import {
  BACKEND_KINDS,
  type BackendKind,
  backendKindOf,
  RESILIENT_KINDS,
  UsageError,
} from "../../config/option-spec.ts";
import { storageOptionsOf } from "../../config/options/catalog.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { ClusterRuns, NoteDecision, UpkeepMetrics } from "../../namespace/figures.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { ByteBudget } from "../../namespace/memory/byte-budget.ts";
import { readText } from "../../runtime/files/files-in-time.ts";
import { isJsonObject } from "../../runtime/text.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import type { SharedDatabase } from "../../runtime/threads/sharing.ts";
import { required, upstreamIdentityOf } from "../access/upstream-identity.ts";
import { type BackendFactory, loadDefault } from "../plugins.ts";
import { upkeepOptionsOf, withRows } from "./open-rows.ts";

/** Resources that a backend shares with the rest of the gateway. */
export interface Surroundings {
  readonly log: Logger;
  /** The cache of the process for roots in S3 buckets. Default: none. */
  readonly cache?: BucketCache | undefined;
  /** Memory for open query results. Default: each directory has its own. */
  readonly readAhead?: ReadAhead | undefined;
  /** The turns of work that may hold a thread of the engine for long. Default: each directory has its own. */
  readonly engineTurns?: Turns | undefined;
  /** Memory for answers of upstreams that are collected. Default: each upstream has its own. */
  readonly answers?: ByteBudget | undefined;
  /** Whether the gateway looks after the tables of directories in the background. Default: false. */
  readonly looksAfterTables?: boolean;
  /** Whether a directory takes over the jobs that ended processes have left in it. Default: true. */
  readonly takesOver?: boolean;
  /** Counts the upkeep of tables. Default: it is not counted. */
  readonly upkeepMetrics?: UpkeepMetrics | undefined;
  /** Counts the work of jobs on a cluster. Default: it is not counted. */
  readonly clusterMetrics?: ClusterRuns | undefined;
  /** Counts decisions about an upstream that do not belong to a call. Default: they are not counted. */
  readonly noteDecision?: NoteDecision | undefined;
  /** Bounds and facts that hold for all workers of the process. Default: there is a single worker. */
  readonly shared?: SharedDatabase | undefined;
  /** Pauses after failed requests for tokens, for all workers of the process. Default: each backend has its own. */
  readonly tokenPauses?: KeyedCells | undefined;
  /** Backends of plugins, by name. Default: none. */
  readonly backends?: ReadonlyMap<string, BackendFactory> | undefined;
}

/**
 * Opens the backend that the options describe. It loads only the requested kind.
 *
 * @throws Error with a single line, if the backend cannot be opened; UsageError if an option is missing.
 */
export async function openBackend(options: ServeOptions, surroundings: Surroundings): Promise<Backend> {
  const kind = backendKindOf(options.backend);
  const opened = await KINDS[kind](options, surroundings);
  return RESILIENT_KINDS.some((each) => each === kind) ? withRows(opened, options, surroundings) : opened;
}

/**
 * Sets variables that the engine reads when it is loaded, unless the user has set them. The engine's warnings bypass
 * the gateway's log, so only its errors are shown.
 */
export function prepareEngine(): void {
  process.env["LANCEDB_LOG"] ??= "error";
  // Read-ahead of a scan in bytes; the engine's own default is 2 GiB.
  process.env["LANCE_DEFAULT_IO_BUFFER_SIZE"] ??= String(16 * 1024 ** 2);
  // A condition or a search holds a thread while it computes. There are more threads than turns for these (createEngineTurns), so that other calls and
  // the engine's timers always find one.
  process.env["TOKIO_WORKER_THREADS"] ??= String(2 * availableParallelism() + 6);
}

type Open = (options: ServeOptions, surroundings: Surroundings) => Promise<Backend>;

const KINDS: Readonly<Record<BackendKind, Open>> = {
  async dir(options, { upkeepMetrics: metrics, clusterMetrics, looksAfterTables = false, ...surroundings }) {
    const { log, cache, readAhead, engineTurns, shared, takesOver } = surroundings;
    const { createDirectoryBackend } = await import("../../backends/dir/index.ts");
    const { openVendor } = await import("./open-vendor.ts");
    const { clusterOf } = await import("./cluster-of.ts");
    const storageOptions = storageOptionsOf(options.root, options.storageOptions, process.env);
    return createDirectoryBackend({
      ...options,
      storageOptions,
      cluster: await clusterOf(options, clusterMetrics),
      vendor: await openVendor(options, storageOptions, process.env, log),
      clientStorageOptions: Object.fromEntries(options.clientStorageOptions),
      tableIdleMs: options.idleSeconds * 1000,
      maintenance: !options.noMaintenance,
      upkeep:
        looksAfterTables && !options.noMaintenance ? upkeepOptionsOf(options, shared, metrics) : undefined,
      ...{ cache, readAhead, engineTurns, shared, takesOver, log },
    });
  },

  async rest(options, { log, noteDecision, shared, tokenPauses, answers }) {
    const { createRestBackend } = await import("../../backends/rest/index.ts");
    const { uris, upstreamConnectMs: connectMs, upstreamTimeoutMs: totalMs } = options;
    if (uris.length === 0) required(undefined, "--uri");
    return createRestBackend({
      ...upstreamOptions(options, shared),
      ...{ noteDecision, tokenPauses, answers },
      uri: uris,
      tls: await readTls(options),
      timeLimits: { ...timeLimitsOf(options), connectMs, totalMs },
      dialect: options.upstreamDialect,
      delimiter: options.upstreamDelimiter,
      log,
    });
  },

  async grpc(options, { log, noteDecision, shared, tokenPauses, answers }) {
    const { createGrpcBackend } = await import("../../backends/grpc/index.ts");
    const tls = await readTls(options);
    const encrypted = options.upstreamTls || Object.values(tls).some((value) => value !== undefined);
    if (options.addresses.length === 0) required(undefined, "--address");
    return createGrpcBackend({
      ...upstreamOptions(options, shared),
      ...{ noteDecision, tokenPauses, answers },
      addresses: options.addresses,
      tls: encrypted ? tls : undefined,
      connectMs: options.upstreamConnectMs,
      timeLimits: timeLimitsOf(options),
      timeoutMs: options.upstreamTimeoutMs,
      log,
    });
  },

  async glue(options, surroundings) {
    const { openGlueCatalog } = await import("./open-catalog.ts");
    return openGlueCatalog(options, { ...surroundings, ...callOptions(options) });
  },

  polaris: (options, surroundings) => openHttp("polaris", options, surroundings),
  lakekeeper: (options, surroundings) => openHttp("lakekeeper", options, surroundings),
  unity: (options, surroundings) => openHttp("unity", options, surroundings),

  async other({ backend: name, backendOptions }, { log, noteDecision = () => {}, backends }) {
    const known = [...BACKEND_KINDS.filter((kind) => kind !== "other"), ...(backends?.keys() ?? [])];
    const open =
      backends?.get(name) ?? (await loadDefault(name, "--backend", `; there are ${known.join(", ")}`));
    if (typeof open !== "function") {
      throw new UsageError(
        `--backend ${name} must export a function as its default, which returns a backend`,
      );
    }
    const backend: unknown = await open({ options: Object.fromEntries(backendOptions), log, noteDecision });
    const missing = BACKEND_MEMBERS.find((member) => !isJsonObject(backend) || backend[member] === undefined);
    if (missing === undefined) return backend as Backend;
    throw new UsageError(`--backend ${name} returns no backend: ${missing} is missing`);
  },
};

/** Opens a foreign catalog that the gateway calls by its own HTTP client. */
async function openHttp(
  kind: "polaris" | "lakekeeper" | "unity",
  options: ServeOptions,
  { log, noteDecision, shared, tokenPauses, answers }: Surroundings,
): Promise<Backend> {
  const { openHttpCatalog } = await import("./open-catalog.ts");
  if (options.uris.length === 0) required(undefined, "--uri");
  const { upstreamConnectMs: connectMs, upstreamTimeoutMs: totalMs } = options;
  const { cache: _, ...upstream } = upstreamOptions(options, shared);
  return openHttpCatalog(kind, options, {
    ...upstream,
    ...{ log, noteDecision, tokenPauses, answers },
    uri: options.uris,
    tls: await readTls(options),
    timeLimits: { ...timeLimitsOf(options), connectMs, totalMs },
  });
}

const BACKEND_MEMBERS = [
  "name",
  "operations",
  "ready",
  "close",
] as const satisfies readonly (keyof Backend)[];

function timeLimitsOf({ upstreamFirstByteMs: firstByteMs, upstreamIdleMs: idleMs }: ServeOptions) {
  return { firstByteMs, idleMs };
}

function upstreamOptions(options: ServeOptions, shared: SharedDatabase | undefined) {
  const { headers, passHeaders } = options;
  return {
    headers: Object.fromEntries(headers),
    passHeaders: passHeaders.length === 0 ? undefined : passHeaders,
    handsOut: options.upstreamVends,
    identity: upstreamIdentityOf(options, process.env),
    ...callOptions(options),
    cache: {
      ttlMs: options.upstreamCacheMs,
      maxEntries: options.upstreamCacheEntries,
      writes: shared?.upstreamWrites,
    },
  };
}

/** Returns how many calls an upstream may get, and how they are repeated. */
function callOptions(options: ServeOptions) {
  return {
    maxCalls: options.upstreamMaxCalls,
    maxWaiting: options.upstreamMaxWaiting,
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
  const text = await readText(file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} cannot be read: ${error.code ?? error.message}`);
  });
  if (!text.includes("-----BEGIN ")) throw new UsageError(`${file} is not in PEM`);
  return text;
}
