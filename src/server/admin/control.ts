import type { FastifyPluginCallback } from "fastify";
import { LanceError } from "../../namespace/errors.ts";
import type { Profiles } from "./profiles.ts";

/** Access of operators to a running process. */
export interface Control {
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
export const controlPlugin: FastifyPluginCallback<{ control: Control }> = (app, { control }, done) => {
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
