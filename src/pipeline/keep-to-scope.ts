import type { Message } from "@bufbuild/protobuf";
import { actionOf } from "../namespace/actions.ts";
import type { Call } from "../namespace/call.ts";
import type { Identifier } from "../namespace/identifier.ts";
import { refusal } from "./authorize.ts";
import type { Interceptor, OperationName } from "./interceptor.ts";

/** Operations that reach the object of the call, what is below it, and nothing else. */
const OWN_OBJECT: ReadonlySet<string> = new Set<OperationName>([
  ...(["listNamespaces", "listTables", "listMaterializedViews"] as const),
  ...(["createNamespace", "describeNamespace", "namespaceExists", "dropNamespace"] as const),
  ...(["declareTable", "createTable", "describeTable", "tableExists", "getTableStats"] as const),
  ...(["deregisterTable", "dropTable", "insertIntoTable", "mergeInsertIntoTable"] as const),
  ...(["updateTable", "deleteFromTable", "queryTable", "countTableRows", "analyzeTableQueryPlan"] as const),
  ...(["createMultipartWrite", "completeMultipartWrite", "abortMultipartWrite"] as const),
  ...(["prewarmIndex", "prewarmData", "fetchBlobs", "readBlob"] as const),
  ...(["updateTableSchemaMetadata", "updateFieldMetadata", "addColumnsFromSchema"] as const),
  ...(["alterTableAddColumns", "alterTableAlterColumns", "alterTableDropColumns"] as const),
  ...(["createTableIndex", "createTableScalarIndex", "listTableIndices"] as const),
  ...(["describeTableIndexStats", "dropTableIndex"] as const),
  ...(["listTableTags", "getTableTagVersion", "createTableTag", "updateTableTag", "deleteTableTag"] as const),
  ...(["listTableBranches", "createTableBranch", "deleteTableBranch"] as const),
  ...(["diffBranch", "cherryPickBranch"] as const),
  ...(["listTableVersions", "describeTableVersion", "restoreTable", "batchDeleteTableVersions"] as const),
  ...(["describeMaterializedView", "dropMaterializedView"] as const),
  "renameTable",
]);

/**
 * Refuses the calls of a restricted credential that reach any object outside of its scope. An operation that may reach others than
 * its request names is refused as a whole.
 */
export const keepToScope: Interceptor = (call, request, next) => {
  const { principal, method, id } = call;
  if (principal?.scope !== undefined && !isWithin(principal.scope, call, request.operation, request.message))
    throw refusal(call, method.name, actionOf(method), id);
  return next(call, request);
};

interface Reaching {
  readonly newNamespaceId?: readonly string[];
  readonly newTableName?: string;
  readonly location?: string;
}

function isWithin(scope: readonly Identifier[], call: Call, operation: string, message: Message): boolean {
  const { newNamespaceId = [], newTableName, location = "" } = message as Message & Reaching;
  // A location may be that of another table.
  if (!OWN_OBJECT.has(operation) || location !== "") return false;
  const root = call.database === undefined ? [] : [call.database];
  const covers = (object: Identifier) => scope.some((prefix) => startsWith([...root, ...object], prefix));
  if (!covers(call.id)) return false;
  if (operation !== "renameTable") return true;
  const parent = newNamespaceId.length > 0 ? newNamespaceId : call.id.slice(0, -1);
  return covers([...parent, newTableName ?? ""]);
}

function startsWith(object: Identifier, prefix: Identifier): boolean {
  return prefix.every((name, at) => object[at] === name);
}
