import { LanceError } from "../../namespace/errors.ts";
import type { JobStore } from "../dir/jobs/store.ts";

/** The records of jobs of a gateway that keeps none: long work runs within its call. */
export const NO_JOB_RECORDS: JobStore = {
  keepsJobs: false,
  async put() {
    throw new LanceError("Unsupported", "with --rows here the gateway keeps no records of jobs");
  },
  finish: async () => {},
  get: async () => undefined,
  list: async () => [],
  listOpen: async () => [],
  claim: async () => false,
  claimedAt: async () => undefined,
  requestCancel: async () => {},
  isCancelRequested: async () => false,
  prune: async () => {},
};
