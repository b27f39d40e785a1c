import type { Message } from "@bufbuild/protobuf";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import { personStream } from "./arrow.ts";
import type { LanceClient } from "./client.ts";

/** The operations that a backend with the catalog and the data operations has. */
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

/** Calls any operation with nothing but an identifier, and with a body where it takes one. */
export async function callBare(client: LanceClient, operation: Operation, id: string[]): Promise<unknown> {
  const method = LanceNamespaceService.method[operation];
  const init = {
    ...("id" in method.input.field ? { id } : {}),
    // A path parameter of its own, which the REST route cannot do without.
    ...("indexName" in method.input.field ? { indexName: "an_index" } : {}),
  };
  const call = client[operation] as (init: object, body: Uint8Array) => Promise<Message>;
  return await call(init, personStream([]));
}
