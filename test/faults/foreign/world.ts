import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { createLakekeeperBackend } from "../../../src/backends/catalogs/iceberg/index.ts";
import { createComposedBackend } from "../../../src/backends/composed/index.ts";
import type { UpkeepTimes } from "../../../src/backends/dir/upkeep/activity.ts";
import type { UpkeepPolicy } from "../../../src/backends/dir/upkeep/policy.ts";
import type { UpkeepMetrics } from "../../../src/namespace/figures.ts";
import { createCaller } from "../../support/caller.ts";
import type { CatalogAnswer, CatalogRequest } from "../../support/catalogs/catalog-server.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import type { LanceClient } from "../../support/client.ts";
import { S3_BUCKET, startS3Server } from "../../support/s3-server.ts";

/** Faults at a request of a gateway, to the catalog or to the bucket. */
export const FAULTS = {
  "kill before": "the gateway ends before the request arrives",
  "kill after": "the gateway ends before the answer arrives",
  refuse: "the server is busy and does nothing",
  fail: "the server fails after it has done the work",
  lose: "the connection breaks after the work",
  silence: "the catalog does the work and does not answer in time",
  expire: "the credentials and the token that were given so far expire",
  stale: "the catalog answers from before the last change",
} as const;

/** A fault at one of the requests of a change, which are counted from 0. */
export interface Fault {
  readonly kind: keyof typeof FAULTS;
  readonly at: number;
}

/** A gateway in front of the catalog, with the rows of its tables in the bucket. */
export interface Gateway {
  readonly client: LanceClient;
  /** Arms a fault for the next requests. Default: none. */
  arm(fault?: Fault): void;
  /** Whether the armed fault has come. */
  hasMet(): boolean;
  /** Whether it has been killed. */
  isKilled(): boolean;
  /** Waits until upkeep has worked on a table or has failed, but not for long. */
  lookedAfter(): Promise<void>;
  close(): Promise<void>;
}

/** A catalog of the Iceberg family, which deletes the files of dropped tables, and a bucket. */
export interface World {
  /**
   * Opens a gateway.
   *
   * @param patienceMs longest time for an answer of the catalog, in milliseconds. Default: no limit
   * @param hasUpkeep whether it looks after tables as soon as they are written. Default: false
   */
  open(patienceMs?: number, hasUpkeep?: boolean): Promise<Gateway>;
  /** Locations by the names of the tables, as the catalog has them. */
  locations(): ReadonlyMap<string, string>;
  /** Keys of the objects of the bucket. */
  keys(): string[];
  readonly storageOptions: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Namespace of all tables. */
export const NAMESPACE = "n";

/** Place of all tables. */
export const TABLES = `s3://${S3_BUCKET}/tables`;

/** Upkeep that keeps nothing but the newest version, without a wait. */
const POLICY: Partial<UpkeepPolicy> = { fragments: 2, unindexedRows: 1, retentionMs: 0 };
const TIMES: Partial<UpkeepTimes> = {
  settleMs: 0,
  waitMs: 100,
  quietMs: 0,
  commitQuietMs: 0,
  minAgeMs: 0,
  replacedMs: 0,
};

/** Longest wait for upkeep, which a killed gateway does not end, in milliseconds. */
const LOOK_MS = 2_000;

/** Access key of the owner of the bucket, whose credentials do not expire. */
const OWNER = "owner";

const GATEWAY_HEADER = "x-gateway";

/** Starts a catalog and a bucket. Each gateway has credentials of its own, by which a fault finds it. */
export async function startWorld(): Promise<World> {
  const bucket = await startS3Server();
  const catalog = await startIcebergServer("lakekeeper");
  const { url: uri, warehouse } = catalog;
  const gateways = new Map<string, ReturnType<typeof createPlan>>();
  /** Names of gateways by the credentials that have not expired. */
  const valid = new Map<string, string>();
  let issued = 0;
  let purged = 0;
  let before: ReadonlyMap<string, string> = new Map();

  function issue(gateway: string): Record<string, string> {
    issued += 1;
    const key = `${gateway}-${issued}`;
    valid.set(key, gateway);
    return {
      "s3.access-key-id": key,
      "s3.secret-access-key": "not-a-real-secret",
      "s3.session-token": `token-${issued}`,
      "s3.session-token-expires-at-ms": String(Date.now() + 3_600_000),
      "s3.endpoint": `http://127.0.0.1:${bucket.port}`,
      "s3.region": "us-east-1",
      "s3.path-style-access": "true",
    };
  }
  /** Deletes the files of dropped tables, as the catalog is told to. */
  function purge(): void {
    for (const location of catalog.purged.slice(purged)) {
      const prefix = `${location.slice(`s3://${S3_BUCKET}/`.length)}/`;
      for (const key of bucket.objects.keys()) if (key.startsWith(prefix)) bucket.objects.delete(key);
    }
    purged = catalog.purged.length;
  }
  const failure = (status: number, type: string): CatalogAnswer => ({
    status,
    body: { error: { message: type, type, code: status } },
  });

  catalog.before = (request) => {
    const gateway = String(request.headers[GATEWAY_HEADER] ?? "");
    catalog.credentials = issue(gateway);
    if (request.method !== "GET") before = new Map(catalog.locations());
    const kind = gateways.get(gateway)?.next();
    if (kind === "kill before") return "reset";
    if (kind === "refuse") return failure(503, "ServiceUnavailableException");
    if (kind === "expire") {
      valid.clear();
      return failure(401, "NotAuthorizedException");
    }
    if (kind === "stale") return staleAnswer(request);
    if (kind !== undefined) pending.set(request, kind);
    return undefined;
  };
  const pending = new Map<CatalogRequest, Fault["kind"]>();
  catalog.after = (request, answer) => {
    purge();
    const kind = pending.get(request);
    pending.delete(request);
    if (kind === "fail") return failure(500, "InternalServerError");
    if (kind === "silence") return "silent";
    return kind === undefined ? answer : "reset";
  };
  /** A description from before the last change: the table that it made or renamed is missing. */
  function staleAnswer({ method, path }: CatalogRequest): CatalogAnswer | undefined {
    const name = /\/generic-tables\/([^/]+)$/.exec(path)?.[1];
    if (method !== "GET" || name === undefined || before.has(name)) return undefined;
    return failure(404, "NoSuchTableException");
  }

  bucket.intercept = (request, response) => {
    const key = /Credential=([^/]+)\//.exec(request.headers.authorization ?? "")?.[1] ?? "";
    if (key === OWNER) return false;
    const gateway = valid.get(key);
    const refuse = (status: number, code: string) =>
      void response.writeHead(status).end(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`);
    if (gateway === undefined) {
      refuse(400, "ExpiredToken");
      return true;
    }
    const kind = gateways.get(gateway)?.next();
    return kind !== undefined && meet(kind, response, refuse);
  };
  function meet(
    kind: Fault["kind"],
    response: ServerResponse,
    refuse: (status: number, code: string) => void,
  ): boolean {
    if (kind === "stale") return false;
    if (kind === "kill before") refuse(403, "AccessDenied");
    else if (kind === "refuse") refuse(503, "SlowDown");
    else if (kind === "expire") {
      valid.clear();
      refuse(400, "ExpiredToken");
    } else {
      // The work is done, and its answer does not arrive.
      response.writeHead = () => {
        response.destroy();
        return response;
      };
      return false;
    }
    return true;
  }

  const setUp = await openGateway("setup");
  await setUp.client.createNamespace({ id: [NAMESPACE] });
  await setUp.close();

  async function openGateway(name: string, totalMs = 0, hasUpkeep = false): Promise<Gateway> {
    const plan = createPlan();
    const looked = Promise.withResolvers<void>();
    const metrics: UpkeepMetrics = {
      done: () => looked.resolve(),
      missed: () => looked.resolve(),
      watch: () => () => {},
    };
    const upkeep = hasUpkeep ? { policy: POLICY, times: TIMES, sweeps: false, metrics } : undefined;
    gateways.set(name, plan);
    const log = pino({ level: "silent" });
    const lakekeeper = await createLakekeeperBackend({
      uri,
      warehouse,
      log,
      tableRoot: TABLES,
      headers: { [GATEWAY_HEADER]: name },
      timeLimits: { totalMs },
      resilience: { backoffMs: 1, circuitFailures: 0 },
    });
    const backend = createComposedBackend(lakekeeper, { log, upkeep });
    return {
      client: createCaller({ backend, limits: { maxUploadBytes: 2 ** 26 } }),
      ...plan,
      lookedAfter: () => Promise.race([looked.promise, sleep(LOOK_MS)]),
      async close() {
        plan.kill();
        await backend.close();
        gateways.delete(name);
        // Requests of the engine may still be on their way.
        await sleep(0);
      },
    };
  }

  let opened = 0;
  return {
    open(patienceMs, hasUpkeep) {
      opened += 1;
      return openGateway(`gateway${opened}`, patienceMs, hasUpkeep);
    },
    locations: () => catalog.locations(),
    keys: () => [...bucket.objects.keys()],
    storageOptions: { ...bucket.options, aws_access_key_id: OWNER },
    async close() {
      await catalog.close();
      await bucket.close();
    },
  };
}

/** Creates the plan of what happens to the requests of a gateway. */
function createPlan() {
  let fault: Fault | undefined;
  let count = 0;
  let killed = false;
  return {
    arm(next?: Fault) {
      fault = next;
      count = 0;
    },
    kill() {
      killed = true;
    },
    hasMet: () => fault !== undefined && fault.at < count,
    isKilled: () => killed,
    /** Returns what happens to the next request. */
    next(): Fault["kind"] | undefined {
      if (killed) return "kill before";
      const kind = fault?.at === count ? fault.kind : undefined;
      count += 1;
      if (kind?.startsWith("kill")) killed = true;
      return kind;
    },
  };
}
