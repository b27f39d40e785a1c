/** How the work of a job on a cluster has ended for the gateway that follows it. */
export type ClusterOutcome = "succeeded" | "failed" | "cancelled" | "left";

/** Counts what runs on a cluster for jobs. */
export interface ClusterRuns {
  /** Counts a run of a driver that the cluster has taken, or had taken already. */
  submitted(): void;
  /** Counts work that this process follows; the returned function counts its end. */
  follow(): (outcome: ClusterOutcome) => void;
}
