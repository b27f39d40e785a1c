import type { DescService } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { DIALECTS } from "../dialects/registry.ts";
import { FlightService } from "../gen/arrow/flight/protocol/Flight_pb.ts";
import { AccessService } from "../gen/lance/gateway/v1/access_pb.ts";
import { DriverService } from "../gen/lance/gateway/v1/driver_pb.ts";
import { LanceDbService } from "../gen/lance/gateway/v1/lancedb_pb.ts";
import { SqlService } from "../gen/lance/gateway/v1/sql_pb.ts";
import { ViewService } from "../gen/lance/gateway/v1/sql_view_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { type ByteBudget, createByteBudget } from "../namespace/memory/byte-budget.ts";
import type { Service } from "../namespace/service.ts";
import type { Metrics } from "../observability/metrics/metrics.ts";
import { createService, type ServiceOptions } from "../pipeline/create-service.ts";
import type { CallerCounters, CallerLimits } from "../pipeline/limits/caller-limits.ts";
import {
  createMaskPath,
  createRefusalNotes,
  type MaskPath,
  type NoteRefusal,
} from "../pipeline/records/refusals.ts";
import { createServiceSwitch } from "../pipeline/service-switch.ts";
import { createLoopPace, type LoopPace } from "../runtime/loop-pace.ts";
import type { SharedQuantity } from "../runtime/threads/sharing.ts";
import { createTranscoder, type Transcoder } from "../transcode/transcoder.ts";

/** Parts that decide about calls and answer them; they can be replaced. */
export interface CallOptions
  extends Pick<
    ServiceOptions,
    | "databases"
    | "routes"
    | "interceptors"
    | "authenticator"
    | "authorizer"
    | "pageTokenSecret"
    | "readOnly"
    | "version"
    | "trail"
    | "tracing"
    | "announcements"
    | "administration"
    | keyof CallerLimits
    | keyof CallerCounters
  > {
  /** Maximum memory for all requests, in bytes. Default: unlimited. */
  readonly maxBufferedBytes?: number | undefined;
}

/** Options of {@link createApi}. */
export interface ApiOptions extends CallOptions {
  /** Memory that the requests of all workers hold. Default: there is a single worker. */
  readonly bufferedBytes?: SharedQuantity | undefined;
  /** Number of workers, each of which has an equal part of the memory for answers. Default: 1. */
  readonly workerCount?: number | undefined;
  readonly log: Logger;
  /** Counts the calls. Default: calls are not counted. */
  readonly metrics?: Metrics | undefined;
}

/** Part of the memory for requests that is set aside for answers that their clients do not take. */
const UNSENT_PART = 1 / 2;

/** Least memory that a worker sets aside for that: results come in pieces of a few megabytes, which a slow reader takes its time for. */
const LEAST_UNSENT_BYTES = 32 * 1024 * 1024;

/**
 * Everything that wires need to answer calls: the pipeline, the REST bindings, and the state that all requests share.
 */
export interface Api {
  readonly service: Service;
  /** Answers all later calls by other options; resolves when the running calls have ended. */
  replace(options: CallOptions): Promise<void>;
  /** Resolves when the running calls have ended; there may be no further ones. */
  ended(): Promise<void>;
  readonly transcoders: readonly Transcoder[];
  readonly refused: NoteRefusal;
  readonly mask: MaskPath;
  /** Memory of requests, across wires and databases. */
  readonly budget: ByteBudget;
  /** Memory of answers that their clients do not take. */
  readonly unsentBudget: ByteBudget;
  /** Shares turns of the event loop among the calls of all wires. */
  readonly pace: LoopPace;
}

/** Creates the pipeline in front of databases, and the REST bindings of every dialect. */
export function createApi({ bufferedBytes, workerCount = 1, log, metrics, ...options }: ApiOptions): Api {
  const budget = createByteBudget(options.maxBufferedBytes, bufferedBytes);
  const unsentBytesOf = ({ maxBufferedBytes = Number.POSITIVE_INFINITY }: CallOptions) =>
    Math.max((maxBufferedBytes * UNSENT_PART) / workerCount, LEAST_UNSENT_BYTES);
  const unsentBudget = createByteBudget(unsentBytesOf(options));
  const serviceOf = (calls: CallOptions) => createService({ ...calls, metrics: metrics?.calls, budget });
  const calls = createServiceSwitch(serviceOf(options));
  const services = [LanceNamespaceService, LanceDbService, ViewService, DriverService];
  const transcoders = DIALECTS.map((dialect) => createTranscoder(services, dialect));
  const mask = createMaskPath(
    knownSegments([...services, AccessService, SqlService, FlightService], transcoders),
  );
  return {
    service: calls.service,
    replace(next) {
      const replaced = calls.replace(serviceOf(next));
      budget.resize(next.maxBufferedBytes);
      unsentBudget.resize(unsentBytesOf(next));
      return replaced;
    },
    ended: calls.ended,
    transcoders,
    refused: createRefusalNotes(log, mask, metrics?.refuse),
    mask,
    budget,
    unsentBudget,
    pace: createLoopPace(),
  };
}

/** Pages beside the contract. */
const PAGES = ["healthz", "readyz", "metrics", "openapi.json", "docs", "docs.js", "docs.css", "mcp"];

/** Returns the literal segments of the paths in the contract and of pages, including names of services and methods. */
function knownSegments(
  services: readonly DescService[],
  transcoders: readonly Transcoder[],
): ReadonlySet<string> {
  const names = services.flatMap(({ typeName, methods }) => [typeName, ...methods.map(({ name }) => name)]);
  const segments = transcoders.flatMap(({ bindings }) =>
    bindings.flatMap(({ template }) => template.segments),
  );
  const literals = segments.flatMap((segment) => (typeof segment === "object" ? [segment.literal] : []));
  return new Set([...names, ...literals, ...PAGES]);
}
