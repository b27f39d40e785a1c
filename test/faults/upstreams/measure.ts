import { tableFromIPC } from "apache-arrow";
import { pino } from "pino";
import { createGrpcBackend } from "../../../src/backends/grpc/index.ts";
import type { ResiliencePolicy } from "../../../src/backends/resilience/resilience.ts";
import { createRestBackend } from "../../../src/backends/rest/index.ts";
import { ERROR_TABLE } from "../../../src/namespace/errors.ts";
import type { Backend } from "../../../src/namespace/lance-namespace.ts";
import { people, personStream } from "../../support/arrow.ts";
import { CallError, type LanceClient, type ProtocolClient } from "../../support/client.ts";
import { createGrpcClient } from "../../support/grpc-client.ts";
import { createRestClient } from "../../support/rest-client.ts";
import { serveDatabases } from "../../support/serve-databases.ts";
import { OPERATIONS, type Operation, ROWS } from "./answers.ts";
import { FAULTS, type Fault, PATIENCE_MS, WIRES, type Wire } from "./faults.ts";
import { startGrpcUpstream } from "./grpc-upstream.ts";
import { startRestUpstream } from "./rest-upstream.ts";
import type { FaultyUpstream } from "./upstream.ts";

/** A call to an upstream with a fault. */
export interface Case {
  readonly fault: Fault;
  /** The protocol of the upstream. */
  readonly wire: Wire;
  readonly client: Wire;
  readonly operation: Operation;
}

/** The outcome of a call. */
export interface Outcome {
  /**
   * `ok`, the name of an error, `cut off` for a body that was cut off, or `incomplete` for a body that ended regularly
   * but is wrong.
   */
  readonly saw: string;
  readonly ms: number;
  /** Number of calls that the upstream got. */
  readonly calls: number;
}

/** A gateway in front of upstreams with every fault, over both protocols. */
export interface FaultyWorld {
  measure(one: Case): Promise<Outcome>;
  close(): Promise<void>;
}

/**
 * Returns the cases of a fault. Clients differ only in the bodies of answers; other operations are called by one
 * client.
 */
export function casesOf(fault: Fault, wire: Wire): Case[] {
  if ((wire === "REST" ? fault.rest : fault.grpc) === undefined) return [];
  return OPERATIONS.flatMap((operation) => {
    const clients = operation === "query" || operation === "describe" ? WIRES : [wire];
    return clients.map((client) => ({ fault, wire, client, operation }));
  });
}

/** Returns the expected outcome of a case, such as `ok, 2`. */
export function expectedOf({ fault: { expected }, wire, client, operation }: Case): string {
  const one = ("describe" in expected ? expected : expected[wire])[operation];
  return typeof one === "string" ? one : one[client];
}

const log = pino({ level: "silent" });
const MIB = 1024 * 1024;
const LIMITS = { maxUploadBytes: 16 * MIB };
const SERVER = { ...LIMITS, host: "127.0.0.1", port: 0, maxMessageBytes: MIB, drainSeconds: 0 };
/** Keeps the cases independent: without a circuit that others could open, and with enough repetitions. */
const POLICY: ResiliencePolicy = { circuitFailures: 0, retryShare: 1 };

/** Starts the gateway, its upstreams and its clients. */
export async function startFaultyWorld(): Promise<FaultyWorld> {
  const upstreams = new Map<string, FaultyUpstream>();
  const databases = new Map<string, { backend: Backend; limits: typeof LIMITS }>();
  for (const fault of FAULTS) {
    for (const wire of WIRES) {
      const upstream = await startUpstream(fault, wire);
      if (upstream === undefined) continue;
      const name = nameOf(fault, wire);
      upstreams.set(name, upstream);
      const patienceMs = PATIENCE_MS[fault.slow ? "slow" : "other"];
      const backend = await openBackend(wire, [upstream.port], { ...POLICY, ...fault.policy }, patienceMs);
      databases.set(name, { backend, limits: LIMITS });
    }
  }
  const routing = { routes: [{ by: "namespace" }], pathPrefix: undefined, fallback: undefined } as const;
  const gateway = await serveDatabases(databases, routing, SERVER, { log });
  const clients: Readonly<Record<Wire, ProtocolClient>> = {
    REST: createRestClient(gateway.address.port),
    gRPC: createGrpcClient(gateway.address.port),
  };

  return {
    async measure({ fault, wire, client, operation }) {
      const name = nameOf(fault, wire);
      const upstream = upstreams.get(name) as FaultyUpstream;
      await upstream.forget(operation);
      const started = performance.now();
      const saw = await CALLS[operation](clients[client].client, name).catch(nameOfError);
      return { saw, ms: performance.now() - started, calls: upstream.calls(operation) };
    },
    async close() {
      for (const { close } of Object.values(clients)) close();
      await gateway.close();
      for (const upstream of upstreams.values()) upstream.stop();
    },
  };
}

/** A port that the system never gives to the listener of another test. */
const NOBODYS_PORT = 1;

/** Starts an upstream with a fault; undefined if its protocol cannot have the fault. */
export async function startUpstream(fault: Fault, wire: Wire): Promise<FaultyUpstream | undefined> {
  const { rest, grpc, grpcConnection, once = false } = fault;
  const upstream =
    wire === "REST"
      ? rest && (await startRestUpstream(rest, once))
      : grpc && (await startGrpcUpstream(grpc, once, grpcConnection));
  if (!fault.away || upstream === undefined) return upstream;
  upstream.stop();
  return { ...upstream, port: NOBODYS_PORT };
}

/** Opens a backend with equal time limits. */
export function openBackend(
  wire: Wire,
  ports: readonly number[],
  resilience: ResiliencePolicy,
  patienceMs: number,
): Promise<Backend> {
  const timeLimits = { connectMs: patienceMs, firstByteMs: patienceMs, idleMs: patienceMs };
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  return wire === "REST"
    ? createRestBackend({ uri: addresses.map((address) => `http://${address}`), timeLimits, resilience, log })
    : createGrpcBackend({ addresses, connectMs: patienceMs, timeLimits, resilience, log });
}

/** Returns the name of the database with a fault. */
function nameOf(fault: Fault, wire: Wire): string {
  return `${wire}: ${fault.name}`;
}

const BODY = personStream(people(ROWS));

const CALLS: Readonly<Record<Operation, (client: LanceClient, database: string) => Promise<string>>> = {
  async describe(client, database) {
    const { table } = await client.describeTable({ id: [database, "t"] });
    return table === "t" ? "ok" : "incomplete";
  },
  async query(client, database) {
    const { bytes } = await client.queryTable({ id: [database, "t"], k: BigInt(ROWS) });
    return rowsOf(bytes) === ROWS ? "ok" : "incomplete";
  },
  async insert(client, database) {
    const { transactionId = "" } = await client.insertIntoTable({ id: [database, "t"] }, BODY);
    return transactionId === "" ? "incomplete" : "ok";
  },
  async create(client, database) {
    const { properties } = await client.createNamespace({ id: [database, "n"] });
    return "text" in properties ? "ok" : "incomplete";
  },
};

function rowsOf(bytes: Uint8Array): number {
  try {
    return tableFromIPC(bytes).numRows;
  } catch {
    return 0;
  }
}

function nameOfError(error: unknown): string {
  if (!(error instanceof CallError)) return "cut off";
  const { code, httpStatus, grpcCode } = error.failure;
  const row = ERROR_TABLE.find(
    (entry) =>
      entry.code === code &&
      (httpStatus === undefined || entry.httpStatus === httpStatus) &&
      (grpcCode === undefined || entry.grpcCode === grpcCode),
  );
  return row?.name ?? error.message;
}
