import type { AddressInfo } from "node:net";
import type { MessagePort } from "node:worker_threads";
import type { CacheAccess } from "../../backends/dir/cache/join-cache.ts";
import type { Configuration } from "../../config/configuration.ts";
import type { Haste } from "../../gateway/compose.ts";
import type { ChangeEvent } from "../../namespace/change-event.ts";
import type { ProcessSnapshot, Snapshot } from "../../observability/metrics/snapshots.ts";
import type { CellsMemory } from "./shared-memory.ts";

/** Place of a database in a process, which another configuration of it does not get. */
export interface DatabaseSlot {
  readonly slot: number;
  readonly memory: SharedArrayBuffer;
}

/** Places of the databases by name; the empty text is an only database. */
export type DatabaseSlots = Readonly<Record<string, DatabaseSlot>>;

/** A port for the commits of the catalog in a place. */
export interface CommitPort {
  readonly slot: number;
  readonly port: MessagePort;
}

/** Data with which a worker begins. */
export interface WorkerStart {
  readonly configuration: Configuration;
  /** Position of the worker, from 0. */
  readonly worker: number;
  readonly workers: number;
  /** Whether it replaces a worker that has ended. */
  readonly isReplacement: boolean;
  readonly memory: SharedArrayBuffer;
  /** Memory of each database. */
  readonly databases: DatabaseSlots;
  /** Ports to the first worker for commits; none if this is the first, or if it does not run. */
  readonly commitPorts: readonly CommitPort[];
  /** Numbers of limits that all workers share. */
  readonly cells: CellsMemory;
  /** The cache of the process; none without one. */
  readonly cache: CacheAccess | undefined;
}

/** A changed configuration for a worker. */
export type ChangeForWorker = Pick<WorkerStart, "configuration" | "databases" | "cells">;

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
  | ({ readonly type: "commit port" } & CommitPort)
  /** Asks to open what a changed configuration needs. */
  | ({ readonly type: "prepare"; readonly id: number } & ChangeForWorker)
  /** Ends a change that was prepared. */
  | { readonly type: "commit" | "abort" }
  /** Asks to read files that have changed. */
  | { readonly type: "refresh"; readonly id: number }
  | { readonly type: "log level"; readonly level: string }
  /** Asks for a CPU profile of the worker. */
  | { readonly type: "profile"; readonly id: number; readonly milliseconds: number }
  /** Begins the drain. */
  | { readonly type: "close"; readonly haste: Haste | undefined }
  /** Asks it to end at once, without a drain. */
  | { readonly type: "leave" };

export type PrepareRequest = Extract<ToWorker, { readonly type: "prepare" }>;
export type ProfileRequest = Extract<ToWorker, { readonly type: "profile" }>;

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
  /** Answers "prepare"; with a failure if the configuration cannot be served. */
  | { readonly type: "prepared"; readonly id: number; readonly failure: StartFailure | undefined }
  /** Answers "refresh", after all earlier messages have had their effect. */
  | { readonly type: "refreshed"; readonly id: number }
  /** Answers "profile"; without a profile if it cannot be made. */
  | { readonly type: "profiled"; readonly id: number; readonly profile: string | undefined }
  /** The worker serves no more, after an exception that nobody caught or because it was asked to leave; its thread ends once no call of the engine runs. */
  | { readonly type: "leaves" }
  /** The drain is over; whether no call of the engine runs in the worker. */
  | { readonly type: "closed"; readonly finished: boolean; readonly isQuiet: boolean }
  | { readonly type: "close failed"; readonly message: string };

/** The parts of an error that tell users why a worker cannot start. */
export interface StartFailure {
  readonly message: string;
  readonly code: string | undefined;
  readonly isUsage: boolean;
}
