import type { AddressInfo } from "node:net";
import type { MessagePort } from "node:worker_threads";
import type { Configuration } from "../../config/configuration.ts";
import type { ProcessSnapshot, Snapshot } from "../../metrics/aggregate.ts";
import type { ChangeEvent } from "../../namespace/change-event.ts";
import type { CellsMemory } from "./shared-cells.ts";
import type { MemoryShape } from "./shared-memory.ts";

/** Data with which a worker begins. */
export interface WorkerStart {
  readonly configuration: Configuration;
  /** Position of the worker, from 0. */
  readonly worker: number;
  readonly shape: MemoryShape;
  readonly memory: SharedArrayBuffer;
  /** Ports to the first worker for commits, by database; none if this is the first, or if it does not run. */
  readonly commitPorts: readonly MessagePort[];
  /** Numbers of limits that all workers share. */
  readonly cells: CellsMemory;
}

/** Messages from the supervisor to a worker. */
export type ToWorker =
  /** Whether the process can answer calls. */
  | { readonly type: "readiness"; readonly ready: boolean }
  /** Asks for the worker's metrics. */
  | { readonly type: "read metrics"; readonly id: number }
  /** Answers "gather"; without metrics if they cannot be read. */
  | { readonly type: "gathered"; readonly id: number; readonly metrics: ProcessSnapshot | undefined }
  /** Answers "announce". */
  | { readonly type: "announced"; readonly id: number }
  /** A further port to another worker, for the commits of a database's catalog. */
  | { readonly type: "commit port"; readonly database: number; readonly port: MessagePort }
  /** Begins the drain. */
  | { readonly type: "close" };

/** Messages from a worker to the supervisor. */
export type ToSupervisor =
  | { readonly type: "listening"; readonly address: AddressInfo; readonly readOnly: readonly string[] }
  | { readonly type: "start failed"; readonly failure: StartFailure }
  /** Whether the worker can answer calls. */
  | { readonly type: "readiness"; readonly ready: boolean }
  /** Answers "read metrics". */
  | { readonly type: "metrics"; readonly id: number; readonly metrics: Snapshot }
  /** Asks for the metrics of all workers. */
  | { readonly type: "gather"; readonly id: number }
  /** Hands events over for their delivery. */
  | { readonly type: "announce"; readonly id: number; readonly events: readonly ChangeEvent[] }
  /** The drain is over. */
  | { readonly type: "closed"; readonly finished: boolean }
  | { readonly type: "close failed"; readonly message: string };

/** The parts of an error that tell users why a worker cannot start. */
export interface StartFailure {
  readonly message: string;
  readonly code: string | undefined;
  readonly isUsage: boolean;
}
