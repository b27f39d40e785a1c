import type { DescMethod } from "@bufbuild/protobuf";
import type { Operation } from "./port.ts";

/** The operations that change nothing, so that they may be repeated, or run twice at once. */
const READS: ReadonlySet<string> = new Set<Operation>([
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
]);

/** Whether a method of the contract changes nothing. */
export function isRead(method: DescMethod): boolean {
  return READS.has(method.localName);
}
