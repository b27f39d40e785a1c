import type { SharedCounter, SharedDatabase } from "../../../runtime/threads/sharing.ts";
import type { Staleness } from "../concurrency/shared-checks.ts";
import type { TakeTurn } from "./commits/commit-group.ts";
import type { PropertyLimits } from "./state/properties-size.ts";

/** Options of a catalog. */
export interface CatalogOptions {
  /** How old the state of reads may be. Default: it is the newest. */
  readonly staleness?: Staleness | undefined;
  /** Maximum number of mutations that wait for a commit. Default: 10,000. */
  readonly maxWaiting?: number | undefined;
  /** Bounds of properties. Default: {@link PROPERTY_LIMITS}. */
  readonly properties?: PropertyLimits | undefined;
  /** Maximum number of retries of a commit after another process won. Default: 20. */
  readonly maxRetries?: number | undefined;
  /** Whether the manifest is compacted and pruned in the background. Default: true. */
  readonly maintenance?: boolean | undefined;
  /** Newest version that a worker of the process has committed or read. Default: there is a single worker. */
  readonly newestSeen?: SharedCounter | undefined;
  /** Lets the workers of the process commit one after the other. Default: there is a single worker. */
  readonly inTurn?: TakeTurn | undefined;
  /** The other workers of the process, with which it commits in groups. Default: there is a single worker. */
  readonly workers?: Pick<SharedDatabase, "isFirst" | "commitPorts"> | undefined;
}
