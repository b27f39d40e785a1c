import { LanceError } from "../../../namespace/errors.ts";
import type { Backend } from "../../../namespace/port.ts";

type Operations = Pick<Backend, "operations" | "extensions">;

/** What writes nothing. Anything that is not named here counts as writing. */
const READS: ReadonlySet<string> = new Set([
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
]);

/**
 * Refuses everything that writes.
 *
 * @param reason why the catalog cannot be written; undefined when it can, and nothing is refused
 */
export function onlyReads(reason: string | undefined, all: Operations): Operations {
  if (reason === undefined) return all;
  const refuse = async () => {
    throw new LanceError("Unsupported", `the catalog is served for reading only: ${reason}`);
  };
  const restrict = (handlers: object = {}) =>
    Object.fromEntries(
      Object.entries(handlers).map(([name, handler]) => [name, READS.has(name) ? handler : refuse]),
    );
  return { operations: restrict(all.operations), extensions: restrict(all.extensions) };
}
