import type { LanceDbExtensions, Operation } from "./lance-namespace.ts";
import { type Action, isReadAction } from "./principal.ts";

/** The operations of each kind. */
const OPERATIONS: Readonly<Record<Action, readonly (Operation | keyof LanceDbExtensions)[]>> = {
  list: ["listNamespaces", "listTables", "listAllTables", "listMaterializedViews", "listJobs"],
  describe: [
    "describeNamespace",
    "namespaceExists",
    "describeTable",
    "tableExists",
    "listTableVersions",
    "describeTableVersion",
    "getTableStats",
    "listTableIndices",
    "describeTableIndexStats",
    "listTableTags",
    "getTableTagVersion",
    "listTableBranches",
    "diffBranch",
    "describeTransaction",
    "getLsmWriteSpec",
    "getLsmStats",
    "describeMaterializedView",
    "describeJob",
    "queryJobEvents",
  ],
  read: [
    "queryTable",
    "countTableRows",
    "explainTableQueryPlan",
    "analyzeTableQueryPlan",
    "prewarmIndex",
    "prewarmData",
    "fetchBlobs",
    "readBlob",
  ],
  write: [
    "createTable",
    "declareTable",
    "cloneTable",
    "insertIntoTable",
    "mergeInsertIntoTable",
    "updateTable",
    "deleteFromTable",
    "restoreTable",
    "updateTableSchemaMetadata",
    "updateFieldMetadata",
    "alterTableAddColumns",
    "alterTableAlterColumns",
    "alterTableBackfillColumns",
    "alterTableDropColumns",
    "addColumnsFromSchema",
    "createMultipartWrite",
    "completeMultipartWrite",
    "abortMultipartWrite",
    "createTableIndex",
    "createTableScalarIndex",
    "dropTableIndex",
    "createTableTag",
    "updateTableTag",
    "deleteTableTag",
    "createTableBranch",
    "deleteTableBranch",
    "cherryPickBranch",
    "createTableVersion",
    "batchCreateTableVersions",
    "alterTransaction",
    "createMaterializedView",
    "refreshMaterializedView",
    "setLsmWriteSpec",
    "unsetLsmWriteSpec",
    "cancelJob",
  ],
  manage: [
    "createNamespace",
    "dropNamespace",
    "registerTable",
    "deregisterTable",
    "renameTable",
    "dropTable",
    "dropMaterializedView",
    "batchDeleteTableVersions",
    // It can hold any change of the catalog.
    "batchCommitTables",
  ],
  admin: [
    "manageLsm",
    "manageFunctions",
    "manageViews",
    "manageSecrets",
    "manageAuthorization",
    "manageJobs",
  ],
};

const OF_OPERATION: ReadonlyMap<string, Action> = new Map(
  Object.entries(OPERATIONS).flatMap(([action, operations]) =>
    operations.map((operation) => [operation, action as Action] as const),
  ),
);

/** Returns the kind of a method of the contract. An unknown method needs the most. */
export function actionOf({ localName }: { readonly localName: string }): Action {
  return OF_OPERATION.get(localName) ?? "admin";
}

/** Whether a method of the contract changes nothing. An unknown method counts as a write. */
export function isRead(method: { readonly localName: string }): boolean {
  return isReadAction(actionOf(method));
}
