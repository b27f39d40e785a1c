import type { Message } from "@bufbuild/protobuf";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import { personStream } from "./arrow.ts";
import type { LanceClient } from "./client.ts";

/** The operations of a backend for the catalog and its data. */
export const FIRST_CUT: ReadonlySet<Operation> = new Set<Operation>([
  "createNamespace",
  "listNamespaces",
  "describeNamespace",
  "dropNamespace",
  "namespaceExists",
  "listTables",
  "listAllTables",
  "declareTable",
  "registerTable",
  "describeTable",
  "tableExists",
  "deregisterTable",
  "dropTable",
  "createTable",
  "insertIntoTable",
  "countTableRows",
  "queryTable",
  "explainTableQueryPlan",
  "analyzeTableQueryPlan",
  "mergeInsertIntoTable",
  "updateTable",
  "deleteFromTable",
  "getTableStats",
  "listTableVersions",
  "describeTableVersion",
  "restoreTable",
  "createTableVersion",
  "batchDeleteTableVersions",
  "batchCreateTableVersions",
  "batchCommitTables",
  "listTableTags",
  "getTableTagVersion",
  "createTableTag",
  "updateTableTag",
  "deleteTableTag",
  "listTableBranches",
  "createTableBranch",
  "deleteTableBranch",
  "describeTransaction",
  "alterTransaction",
  "renameTable",
  "alterTableAddColumns",
  "alterTableAlterColumns",
  "alterTableDropColumns",
  "updateFieldMetadata",
  "updateTableSchemaMetadata",
  "createTableIndex",
  "createTableScalarIndex",
  "listTableIndices",
  "describeTableIndexStats",
  "dropTableIndex",
  "alterTableBackfillColumns",
  "createMaterializedView",
  "refreshMaterializedView",
]);

/** Every operation of the contract. */
export const ALL_OPERATIONS: readonly Operation[] = LanceNamespaceService.methods.map(
  (method) => method.localName as Operation,
);

/** Calls any operation with nothing but an identifier, and with a body where the operation takes one. */
export async function callBare(client: LanceClient, operation: Operation, id: string[]): Promise<unknown> {
  const method = LanceNamespaceService.method[operation];
  const init = {
    ...("id" in method.input.field ? { id } : {}),
    // The REST route requires this path parameter.
    ...("indexName" in method.input.field ? { indexName: "an_index" } : {}),
  };
  const call = client[operation] as (init: object, body: Uint8Array) => Promise<Message>;
  return await call(init, personStream([]));
}
