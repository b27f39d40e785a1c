import { LanceError } from "../../../../namespace/errors.ts";
import type { Cluster } from "../ray/cluster.ts";
import { JOB_ENGINES, type JobEngineName } from "./job-engine.ts";

/** The property of a table that overrides where its heavy work is done. */
export const ENGINE_PROPERTY = "lance-gateway.job-engine";

/** Heavy work on a table. */
export interface HeavyWork {
  /** Kind of the job. */
  readonly kind: string;
  readonly rows: number;
  /** The cluster that its request names. Default: none. */
  readonly asked?: string | undefined;
  /** The number of workers that its request names. Default: none. */
  readonly workers?: number | undefined;
  /** Properties of the table. */
  readonly properties: Readonly<Record<string, string>>;
}

/**
 * Returns the engine that does heavy work: the cluster for large tables, unless the request or the table has another wish. Names of other
 * clusters in a request mean nothing here.
 *
 * @throws LanceError Unsupported for a request that names a cluster which the gateway does not have, or not for such work
 */
export function chooseEngine(
  cluster: Pick<Cluster, "minRows" | "kinds"> | undefined,
  { kind, rows, properties, asked }: HeavyWork,
): JobEngineName {
  const own = JOB_ENGINES.find((name) => name === asked) ?? properties[ENGINE_PROPERTY];
  if (asked === "ray" && cluster?.kinds.includes(kind) !== true)
    throw new LanceError("Unsupported", `this gateway has no Ray cluster for jobs of the kind ${kind}`);
  if (cluster === undefined || own === "embedded" || !cluster.kinds.includes(kind)) return "embedded";
  return own === "ray" || rows >= cluster.minRows ? "ray" : "embedded";
}

/** @throws LanceError InvalidInput for an engine that there is not */
export function checkEngineProperty(properties: Readonly<Record<string, string>>): void {
  const own = properties[ENGINE_PROPERTY];
  if (own === undefined || JOB_ENGINES.some((name) => name === own)) return;
  const text = `the property ${ENGINE_PROPERTY} must be ${JOB_ENGINES.join(" or ")}`;
  throw new LanceError("InvalidInput", text);
}

/** Returns the number of workers that a request names, at most that of the cluster, as a parameter of a job. */
export function workersOf(
  cluster: Pick<Cluster, "workers"> | undefined,
  { workers }: Pick<HeavyWork, "workers">,
): { workers?: number } {
  if (cluster === undefined || workers === undefined || workers < 1) return {};
  return { workers: Math.min(workers, cluster.workers) };
}
