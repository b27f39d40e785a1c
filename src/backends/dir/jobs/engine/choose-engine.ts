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
  /** Properties of the table. */
  readonly properties: Readonly<Record<string, string>>;
}

/** Returns the engine that does heavy work: the cluster for large tables, unless the table has another wish. */
export function chooseEngine(
  cluster: Pick<Cluster, "minRows" | "kinds"> | undefined,
  { kind, rows, properties }: HeavyWork,
): JobEngineName {
  const own = properties[ENGINE_PROPERTY];
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
