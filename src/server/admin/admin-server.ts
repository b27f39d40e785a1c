import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { getHeapSnapshot } from "node:v8";
import type { FastifyError, FastifyInstance, FastifyPluginCallback, FastifyReply } from "fastify";
import fastify from "fastify";
import type { Logger } from "pino";
import { LanceError } from "../../namespace/errors.ts";
import { isLoopbackAddress } from "../../runtime/loopback.ts";
import { addBrowserGuard, createHostCheck } from "../app/browser-guard.ts";
import { type MetricsPage, metricsPlugin, probesPlugin } from "../app/probes.ts";
import { type ListenAddress, listenOn } from "../port/listen.ts";

/** Options of {@link createAdminServer}. */
export interface AdminServerOptions {
  readonly readiness: { readonly ready: boolean };
  /** Content of `/metrics`. Default: the path does not exist. */
  readonly metrics?: MetricsPage | undefined;
  readonly control: Control;
  readonly log: Logger;
}

/** The server for operators. */
export interface AdminServer {
  readonly fastify: FastifyInstance;
  /**
   * Starts to accept connections; port 0 takes a free one.
   *
   * @throws Error of node:net, if the port is not available.
   */
  listen(where: ListenAddress): Promise<AddressInfo>;
  close(): Promise<void>;
}

/**
 * Creates the server for operators: metrics and probes for everyone who reaches it, and what reveals memory or changes the process
 * for callers on this machine alone. It has the same guard against pages in browsers as the data port.
 */
export function createAdminServer({ readiness, metrics, control, log }: AdminServerOptions): AdminServer {
  const app = fastify({ forceCloseConnections: true, ajv: { customOptions: { removeAdditional: false } } });
  const hosts = createHostCheck([]);
  let isOnPath = false;
  addBrowserGuard(app, { hosts, origins: [] });
  app.setErrorHandler((error: FastifyError, _request, reply) => answer(error, reply, log));
  app.register(probesPlugin, { readiness });
  app.get("/livez", (_request, reply) => reply.type("text/plain").send("ok\n"));
  if (metrics !== undefined) app.register(metricsPlugin, { metrics });
  app.register((local, _options, done) => {
    addLocalGuard(local, () => isOnPath);
    local.register(controlPlugin, { control });
    done();
  });
  return {
    fastify: app,
    async listen(where) {
      await app.ready();
      isOnPath = "path" in where;
      const address = await listenOn(app.server, where);
      hosts.listensOn("path" in where ? where.path : where.host, address.address);
      return address;
    },
    close: () => app.close(),
  };
}

/**
 * Refuses callers from other machines. A browser on this machine may call for a page that has made its own name lead here, on
 * whatever address the server listens, so only hosts count that no page can have.
 *
 * @param isOnPath whether the server listens on a Unix socket, whose callers have no address.
 */
function addLocalGuard(app: FastifyInstance, isOnPath: () => boolean): void {
  const hosts = createHostCheck([]);
  app.addHook("onRequest", ({ raw: { socket, headers } }, _reply, next) => {
    const { remoteAddress } = socket;
    // Nor has a caller that resets its connection behind the request, wherever it is.
    const isLocal = remoteAddress === undefined ? isOnPath() : isLoopbackAddress(remoteAddress);
    if (isLocal && hosts.serves(headers.host)) return next();
    next(new LanceError("PermissionDenied", "only callers on the gateway's own machine may do this"));
  });
}

function answer(error: FastifyError | LanceError, reply: FastifyReply, log: Logger): FastifyReply {
  if (error instanceof LanceError) return reply.code(error.entry.httpStatus).send({ error: error.message });
  const { statusCode = 500 } = error;
  if (statusCode < 500) return reply.code(statusCode).send({ error: error.message });
  log.error({ err: error }, "a request of an operator failed");
  return reply.code(500).send({ error: "the request failed; the log says why" });
}

/** Access of operators to a running process. */
interface Control {
  /** Returns the configuration in effect, without secrets. */
  configuration(): unknown;
  /** Levels of the log. */
  readonly logLevels: readonly string[];
  logLevel(): string;
  setLogLevel(level: string): void;
  readonly profiles: Profiles;
}

/** Shortest, longest and usual duration of a CPU profile, in seconds. */
const SECONDS = { minimum: 1, maximum: 60, default: 10 } as const;

const WORKER = { type: "integer", minimum: 1 } as const;

/** Serves the paths that reveal the state of the process or change it. */
const controlPlugin: FastifyPluginCallback<{ control: Control }> = (app, { control }, done) => {
  const { profiles } = control;
  let busy = false;

  /** Makes one profile at a time, because each of them slows the process down. */
  async function alone<T>(work: () => Promise<T>): Promise<T> {
    if (busy) throw new LanceError("Throttling", "a profile is already running");
    busy = true;
    try {
      return await work();
    } finally {
      busy = false;
    }
  }

  app.get("/config", (_request, reply) => reply.send(control.configuration()));

  app.get("/log-level", (_request, reply) => reply.send({ level: control.logLevel() }));

  app.put<{ Querystring: { level: string } }>(
    "/log-level",
    { schema: { querystring: objectOf({ level: { enum: control.logLevels } }, ["level"]) } },
    (request, reply) => {
      control.setLogLevel(request.query.level);
      return reply.send({ level: control.logLevel() });
    },
  );

  app.post<{ Querystring: { worker?: number } }>(
    "/heap-snapshot",
    { schema: { querystring: objectOf({ worker: WORKER }) } },
    async ({ query: { worker } }, reply) => {
      const snapshot = await alone(() => profiles.heapSnapshot(worker));
      return reply.headers(download("heapsnapshot", worker)).send(snapshot);
    },
  );

  app.get<{ Querystring: { worker?: number; seconds: number } }>(
    "/cpu-profile",
    { schema: { querystring: objectOf({ worker: WORKER, seconds: { type: "integer", ...SECONDS } }) } },
    async ({ query: { worker, seconds } }, reply) => {
      const profile = await alone(() => profiles.cpuProfile(seconds * 1_000, worker));
      return reply.headers(download("cpuprofile", worker)).send(profile);
    },
  );
  done();
};

function objectOf(properties: object, required: readonly string[] = []) {
  return { type: "object", properties, required, additionalProperties: false } as const;
}

function download(extension: string, worker: number | undefined) {
  const name = worker === undefined ? "main" : `worker-${worker}`;
  return {
    "content-type": "application/json",
    "content-disposition": `attachment; filename="${name}.${extension}"`,
    "cache-control": "no-store",
  };
}

/** Profiles of the threads of a process; a worker is named by its number from 1, and the main thread by none. */
export interface Profiles {
  /**
   * Returns a snapshot of a thread's heap, in the format of Chromium's tools. The thread stops meanwhile.
   *
   * @throws LanceError InvalidInput for a worker that does not exist.
   */
  heapSnapshot(worker?: number): Promise<Readable>;
  /**
   * Returns what a thread has computed for some time, in the format of Chromium's tools.
   *
   * @throws LanceError InvalidInput for a worker that does not exist.
   */
  cpuProfile(milliseconds: number, worker?: number): Promise<string>;
}

/** Profiles of a process with a single thread. */
export const ownProfiles: Profiles = {
  async heapSnapshot(worker) {
    refuseWorker(worker);
    return getHeapSnapshot();
  },
  async cpuProfile(milliseconds, worker) {
    refuseWorker(worker);
    return profileThread(milliseconds);
  },
};

/** Returns what this thread computes for some time. */
export async function profileThread(milliseconds: number): Promise<string> {
  // Only operators who profile need the module.
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await sleep(milliseconds);
    const { profile } = await session.post("Profiler.stop");
    return JSON.stringify(profile);
  } finally {
    session.disconnect();
  }
}

function refuseWorker(worker: number | undefined): void {
  if (worker !== undefined) throw new LanceError("InvalidInput", "the gateway runs without workers");
}
