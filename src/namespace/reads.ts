import type { LanceDbExtensions, Operation } from "./lance-namespace.ts";

/** Operations that change nothing, so that they may be retried, or run twice at once. */
const READS: ReadonlySet<string> = new Set<Operation | keyof LanceDbExtensions>([
  "listNamespaces",
  "describeNamespace",
  "namespaceExists",
  "listTables",
  "listAllTables",
  "describeTable",
  "tableExists",
  "listTableVersions",
  "describeTableVersion",
  "getTableStats",
  "queryTable",
  "countTableRows",
  "explainTableQueryPlan",
  "analyzeTableQueryPlan",
  "listTableIndices",
  "describeTableIndexStats",
  "listTableTags",
  "getTableTagVersion",
  "listTableBranches",
  "describeTransaction",
  "prewarmIndex",
  "prewarmData",
  "getLsmWriteSpec",
  "listJobs",
  "listMaterializedViews",
  "describeMaterializedView",
  "describeJob",
  "fetchBlobs",
  "readBlob",
]);

/** Whether a method of the contract changes nothing. An unknown method counts as a write. */
export function isRead({ localName }: { readonly localName: string }): boolean {
  return READS.has(localName);
}
