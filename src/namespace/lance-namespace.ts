import type {
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageShape,
} from "@bufbuild/protobuf";
import type { DriverService } from "../gen/lance/gateway/v1/driver_pb.ts";
import type { LanceDbService } from "../gen/lance/gateway/v1/lancedb_pb.ts";
import type { ViewService } from "../gen/lance/gateway/v1/sql_view_pb.ts";
import type { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { CreateMaterializedViewRequest } from "../gen/lance/namespace/v1/view_pb.ts";
import type { Call } from "./call/call.ts";
import type { RootDatabases } from "./call/database-context.ts";
import type { Action } from "./call/principal.ts";
import type { ErrorName } from "./errors.ts";
import type { BackendFigures } from "./figures.ts";
import type { Identifier } from "./identifier.ts";

type Methods = typeof LanceNamespaceService.method;

/** Name of an operation, for example `describeTable`. */
export type Operation = keyof Methods;

type Handler<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => Promise<MessageShape<O>>
    : M extends DescMethodClientStreaming<infer I, infer O>
      ? (request: MessageShape<I>, data: AsyncIterable<Uint8Array>, call: Call) => Promise<MessageShape<O>>
      : M extends DescMethodServerStreaming<infer I, infer O>
        ? (request: MessageShape<I>, call: Call) => AsyncIterable<MessageShape<O>>
        : never;

/**
 * The interface between wires and backends: a function for each operation of the contract.
 *
 * The object of a call is `call.id`; the pipeline has checked the id fields of the request against it. An upload gets
 * its parameters as the request and its Arrow IPC bytes as an iterable, split anywhere. A download yields messages
 * with Arrow IPC bytes, split anywhere, and throws if it cannot finish. Failures are thrown as LanceError.
 */
export type LanceNamespace = { readonly [K in Operation]: Handler<Methods[K]> };

/** Operations that LanceDB's remote clients call beyond the contract, in the same form. */
export type LanceDbExtensions = {
  readonly [K in keyof (typeof LanceDbService)["method"]]: Handler<(typeof LanceDbService)["method"][K]>;
};

/** Operations on views, in the same form. */
export type ViewOperations = {
  readonly [K in keyof (typeof ViewService)["method"]]: Handler<(typeof ViewService)["method"][K]>;
};

/** Operations of the drivers of jobs on a cluster, in the same form. */
export type DriverOperations = {
  readonly [K in keyof (typeof DriverService)["method"]]: Handler<(typeof DriverService)["method"][K]>;
};

/** Access to the files of a table; each kind includes those before it. */
export type StorageAccess = Extract<Action, "read" | "write" | "manage">;

/** A backend with the operations that it supports; a missing operation answers Unsupported. */
export interface Backend {
  /** Name in logs and in the operations table, for example `dir`. */
  readonly name: string;
  readonly operations: Partial<LanceNamespace>;
  /** Operations beyond the contract. Default: none. */
  readonly extensions?: Partial<LanceDbExtensions & ViewOperations & DriverOperations>;
  /**
   * Where the data is, for people: a directory, a place in a bucket, or the address of an upstream, without credentials. Callers who
   * may list the root can read it. Default: the backend does not say.
   */
  readonly place?: string | undefined;
  /** Reason, for people, why operations are missing, which their refusal adds. Default: the refusal names the backend alone. */
  readonly missing?: string | undefined;
  /** Calls by the keys that clients chose. Default: keys are the upstream's matter. */
  readonly idempotency?: IdempotencyRecords | undefined;
  /** Reason, for people, why the backend refuses everything that writes. Default: it is writable. */
  readonly readOnly?: string | undefined;
  /**
   * Returns the tables that a new view reads, as the backend parses its query. Default: the backend cannot tell.
   *
   * @throws LanceError of a view that the backend refuses
   */
  sourcesOf?(view: CreateMaterializedViewRequest): readonly Identifier[];
  /** Returns figures for metrics. Default: the backend has none. */
  figures?(): BackendFigures;
  /**
   * Returns the table at a location or of a name, as the backend reads the source of a clone; undefined if there is none.
   * Default: the backend cannot tell.
   */
  tableAt?(place: string): Promise<Identifier | undefined>;
  /**
   * Returns the table of the root to which a location belongs by its name, whether there is one or not; undefined for other locations.
   * Default: locations belong to no tables by their names.
   */
  rootTableAt?(location: string): Identifier | undefined;
  /** Returns the table of a job; undefined for an unknown job. Default: it is looked for in the list of all jobs. */
  tableOfJob?(jobId: string): Promise<Identifier | undefined>;
  /** Whether a job that `tableOfJob` does not know may be an upstream's, and is looked for in the list of all jobs. Default: false. */
  readonly forwardsJobs?: boolean | undefined;
  /**
   * The most that credentials in its answers may allow, if it hands them out without asking `call.may`. Default: it asks, or has
   * none.
   */
  readonly handsOut?: StorageAccess | undefined;
  /**
   * Whether a page token is the name of the last entry of its page, which callers may also write themselves. Default: it may say
   * anything, also what comes next.
   */
  readonly hasPlainPageTokens?: boolean | undefined;
  /** Namespaces of the root that are databases of their own. Default: it has none, and headers name none. */
  readonly rootDatabases?: RootDatabases | undefined;
  /** Whether calls can be answered now, for readiness. It is asked every few seconds. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** The operations of a backend. */
export type BackendOperations = Pick<Backend, "operations" | "extensions">;

/** An operation, whatever its arguments; the call is the last one. */
export type AnyHandler = (...args: [...unknown[], Call]) => unknown;

/** Returns the call among the arguments of an operation. */
export function callIn(args: Parameters<AnyHandler>): Call {
  return args.at(-1) as Call;
}

/** Returns the operations of a backend, each as a function returns it by its name. */
export function wrapOperations(
  { operations, extensions = {} }: BackendOperations,
  wrap: (handler: AnyHandler, localName: string) => AnyHandler,
): BackendOperations {
  const wrapped = (handlers: object): object =>
    Object.fromEntries(
      Object.entries(handlers).map(([localName, handler]) => [localName, wrap(handler, localName)]),
    );
  return { operations: wrapped(operations), extensions: wrapped(extensions) };
}

/** How a call ended, as far as it is kept. */
export type KeptOutcome =
  /** The answer, in binary; undefined if it is too large to keep. */
  | { readonly answer: Uint8Array | undefined }
  | { readonly error: { readonly kind: ErrorName; readonly message: string } };

/** A call that has taken a key before. */
export interface EarlierCall {
  /** Hash of its request, without the body. */
  readonly request: string;
  /**
   * `ended`: its process ended, or its storage failed, before its outcome was kept; nobody knows whether it changed something.
   */
  readonly state: "running" | "ended" | "done";
  /** Hash of its body, if it was read to its end. */
  readonly body?: string | undefined;
  /** Present if it is done. */
  readonly outcome?: KeptOutcome | undefined;
}

/** A key that this call has taken. */
export interface TakenKey {
  /** Keeps the outcome of the call. */
  keep(outcome: KeptOutcome, body: string | undefined): Promise<void>;
  /** Notes that nobody knows how the call ended. */
  lose(): Promise<void>;
  /** Gives the key back: the call has changed nothing and may be repeated. */
  release(): Promise<void>;
}

/** Calls by the keys that their clients chose, for at least a day and at most two, in a place that all servers of a catalog share. */
export interface IdempotencyRecords {
  /**
   * Takes a key for a call.
   *
   * @param key hash of the caller and of the text that it chose
   * @param request hash of the request without its body
   * @returns the earlier call if the key is taken
   * @throws LanceError of the storage; the call must not run then
   */
  take(key: string, request: string): Promise<TakenKey | EarlierCall>;
}

/** Whether a key belongs to an earlier call. */
export function isEarlier(taken: TakenKey | EarlierCall): taken is EarlierCall {
  return "state" in taken;
}
