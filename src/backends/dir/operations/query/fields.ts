import type {
  AnalyzeTableQueryPlanRequest,
  QueryTableRequest,
} from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";

/** What QueryTable and AnalyzeTableQueryPlan ask alike. */
export type QueryFields = Omit<QueryTableRequest | AnalyzeTableQueryPlanRequest, "$typeName" | "$unknown">;

/** Numbers that must not be negative, by their name in the public API. */
const COUNTS = {
  k: "k",
  offset: "offset",
  nprobes: "nprobes",
  minimumNprobes: "minimum_nprobes",
  maximumNprobes: "maximum_nprobes",
  ef: "ef",
  refineFactor: "refine_factor",
} as const;

/** @throws LanceError InvalidInput */
export function checkCounts(request: QueryFields): void {
  for (const [field, name] of Object.entries(COUNTS)) {
    if ((request[field as keyof typeof COUNTS] ?? 0) < 0) {
      throw new LanceError("InvalidInput", `${name} must not be negative`);
    }
  }
}
