import type { Message } from "@bufbuild/protobuf";
import type { ChangeType } from "./change-types.ts";
import type { Identifier } from "./identifier.ts";
import { OBJECTS } from "./objects.ts";
import { reachOf } from "./reach.ts";
import type { AnyOperation, Lookups, ObjectKind } from "./touch.ts";

/** Change of an object of the catalog. */
export interface Change {
  readonly type: ChangeType;
  /** Operation that makes it; for an entry of a commit, the operation that the entry is. */
  readonly operation: AnyOperation;
  readonly kind: ObjectKind;
  readonly id: Identifier;
  /** New name of a renamed table. Default: it keeps its name. */
  readonly to?: Identifier | undefined;
  /** Place in the request of the entry that makes the change. Default: the whole request makes it. */
  readonly entry?: number | undefined;
}

/**
 * The change that an operation makes to its object. The table has every operation, so that a new one does not compile
 * without a decision; undefined for those that change nothing that others can see.
 */
export const CHANGES: { readonly [K in AnyOperation]: ChangeType | undefined } = {
  listNamespaces: undefined,
  listTables: undefined,
  listMaterializedViews: undefined,
  listAllTables: undefined,
  listJobs: undefined,

  createNamespace: "namespace.created",
  describeNamespace: undefined,
  namespaceExists: undefined,
  dropNamespace: "namespace.dropped",

  declareTable: "table.declared",
  createTable: "table.created",
  cloneTable: "table.created",
  registerTable: "table.registered",
  deregisterTable: "table.deregistered",
  dropTable: "table.dropped",
  renameTable: "table.renamed",
  describeTable: undefined,
  tableExists: undefined,
  getTableStats: undefined,

  insertIntoTable: "table.data_changed",
  mergeInsertIntoTable: "table.data_changed",
  updateTable: "table.data_changed",
  deleteFromTable: "table.data_changed",
  // Rows of a write in parts appear when it is completed.
  createMultipartWrite: undefined,
  completeMultipartWrite: "table.data_changed",
  abortMultipartWrite: undefined,
  queryTable: undefined,
  countTableRows: undefined,
  explainTableQueryPlan: undefined,
  analyzeTableQueryPlan: undefined,
  prewarmIndex: undefined,
  prewarmData: undefined,
  fetchBlobs: undefined,
  readBlob: undefined,

  updateTableSchemaMetadata: "table.schema_changed",
  updateFieldMetadata: "table.schema_changed",
  alterTableAddColumns: "table.schema_changed",
  alterTableAlterColumns: "table.schema_changed",
  alterTableBackfillColumns: "table.data_changed",
  alterTableDropColumns: "table.schema_changed",
  addColumnsFromSchema: "table.schema_changed",

  createTableIndex: "table.indices_changed",
  createTableScalarIndex: "table.indices_changed",
  listTableIndices: undefined,
  describeTableIndexStats: undefined,
  dropTableIndex: "table.indices_changed",

  listTableTags: undefined,
  getTableTagVersion: undefined,
  createTableTag: "table.tags_changed",
  updateTableTag: "table.tags_changed",
  deleteTableTag: "table.tags_changed",
  listTableBranches: undefined,
  createTableBranch: "table.branches_changed",
  deleteTableBranch: "table.branches_changed",
  diffBranch: undefined,
  cherryPickBranch: "table.data_changed",

  listTableVersions: undefined,
  describeTableVersion: undefined,
  restoreTable: "table.data_changed",
  createTableVersion: "table.data_changed",
  batchDeleteTableVersions: "table.versions_deleted",
  batchCreateTableVersions: "table.data_changed",
  // Its entries are operations of this table.
  batchCommitTables: "table.data_changed",
  describeTransaction: undefined,
  alterTransaction: "table.transaction_changed",

  createMaterializedView: "table.created",
  refreshMaterializedView: "table.data_changed",
  describeMaterializedView: undefined,
  dropMaterializedView: "table.dropped",
  describeJob: undefined,
  cancelJob: undefined,
  queryJobEvents: undefined,

  getLsmWriteSpec: undefined,
  getLsmStats: undefined,
  setLsmWriteSpec: "table.settings_changed",
  unsetLsmWriteSpec: "table.settings_changed",
  // These belong to services of LanceDB, and to no object of a catalog.
  manageLsm: undefined,
  manageFunctions: undefined,
  manageViews: undefined,
  manageSecrets: undefined,
  manageAuthorization: undefined,
  manageJobs: undefined,
};

/** Whether an operation changes an object of the catalog. */
export function isChange(operation: string): operation is AnyOperation {
  return Object.hasOwn(CHANGES, operation) && CHANGES[operation as AnyOperation] !== undefined;
}

/** No operation with a change needs a lookup for its own objects. */
const NO_LOOKUPS: Lookups = {
  tableOfJob: () => Promise.reject(new Error("a change of a job has no lookup")),
  contentsOf: () => Promise.reject(new Error("a change of a namespace has no lookup")),
  sourcesOf: () => [],
  tableAt: async () => undefined,
  rootTableAt: () => undefined,
};

/**
 * Returns the changes that a request makes if it succeeds, in their order: one for each of its own objects in
 * {@link OBJECTS}. An entry of a commit is a change of its own.
 */
export async function changesOf(
  operation: AnyOperation,
  request: Message,
  id: Identifier,
): Promise<readonly Change[]> {
  const { own, more } = await reachOf(operation, request, id, NO_LOOKUPS);
  const isBatch = OBJECTS[operation].kind === "Database";
  const to = CHANGES[operation] === "table.renamed" ? more()[0]?.id : undefined;
  return own.flatMap(({ operation: each, kind, id: names }, entry) => {
    const type = CHANGES[each];
    if (type === undefined || kind === "Database") return [];
    return [{ type, operation: each, kind, id: names, to, entry: isBatch ? entry : undefined }];
  });
}
