import type { Message, MessageShape } from "@bufbuild/protobuf";
import { CreateNamespaceMode, DropNamespaceBehavior } from "../gen/lance/namespace/v1/namespace_pb.ts";
import { RegisterTableMode } from "../gen/lance/namespace/v1/table_pb.ts";
import { isLanceError, LanceError } from "./errors.ts";
import { agreedIdentifier, type Identifier, sameIdentifier } from "./identifier.ts";
import {
  type AnyOperation,
  type Lookups,
  type Methods,
  namespace,
  type ObjectKind,
  objectOf,
  type Touches,
  table,
} from "./touch.ts";

type Request<K extends AnyOperation> = MessageShape<Methods[K]["input"]>;

/** The object of an operation, and the others that a request reaches. */
export interface Row<K extends AnyOperation> {
  /** Kind of the object of the call; without a name, it is the database. */
  readonly kind: ObjectKind;
  /** Whether the operation reaches only objects that the request names by identifiers, and what is below them. */
  readonly confined: boolean;
  /** Object of the call. Default: the one that `id` names. */
  readonly own?: (request: Request<K>, id: Identifier, lookups: Lookups) => Touches | Promise<Touches>;
  /** Further objects that the id of the call determines. Default: none. */
  readonly beside?: (id: Identifier) => Touches;
  /** Further objects that the request names. Default: none. */
  readonly more?: (request: Request<K>, id: Identifier) => Touches;
  /** Further objects that have to be looked up. Default: none. */
  readonly find?: (request: Request<K>, id: Identifier, lookups: Lookups) => Touches | Promise<Touches>;
}

/** An operation on the whole database. */
export const DATABASE = { kind: "Database", confined: false } as const;
const NAMESPACE = { kind: "Namespace", confined: true } as const;
const TABLE = { kind: "Table", confined: true } as const;
const NAMESPACE_AND_OTHERS = { kind: "Namespace", confined: false } as const;
/** A table whose operation reads or names others, or does what the gateway does not know. */
const TABLE_AND_OTHERS = { kind: "Table", confined: false } as const;

/** Lists are of what the caller may see; whether a namespace exists shows only to callers who may see it. */
const LISTED = {
  ...NAMESPACE,
  beside: (id: Identifier) => (id.length === 0 ? [] : [namespace("describeNamespace", id)]),
} as const;

const TRANSACTION = (operation: AnyOperation) => ({
  ...TABLE_AND_OTHERS,
  own: (_: Message, id: Identifier) => [table(operation, id.slice(0, -1))],
});

const JOB = (operation: AnyOperation) => ({
  ...TABLE_AND_OTHERS,
  async own({ jobId }: { readonly jobId: string }, _: Identifier, { tableOfJob }: Lookups) {
    const found = await tableOfJob(jobId);
    if (found !== undefined) return [table(operation, found)];
    throw new LanceError("TransactionNotFound", `there is no job ${JSON.stringify(jobId)}`);
  },
});

/** The objects of the requests of every operation. */
export const OBJECTS: { readonly [K in AnyOperation]: Row<K> } = {
  listNamespaces: LISTED,
  listTables: LISTED,
  listMaterializedViews: LISTED,
  listAllTables: DATABASE,
  listJobs: DATABASE,

  createNamespace: {
    ...NAMESPACE,
    more: ({ mode }, id) => (mayReplace(mode) ? [namespace("dropNamespace", id)] : []),
    find: ({ mode }, id, lookups) => (mayReplace(mode) ? contentsOfAny(id, lookups) : []),
  },
  describeNamespace: NAMESPACE,
  namespaceExists: NAMESPACE,
  dropNamespace: {
    ...NAMESPACE,
    find: ({ behavior }, id, lookups) => (mayCascade(behavior) ? contentsOfAny(id, lookups) : []),
  },

  declareTable: {
    ...TABLE,
    find: ({ location }, id, lookups) => placeOf("declareTable", location, id, lookups),
  },
  createTable: TABLE,
  cloneTable: {
    ...TABLE_AND_OTHERS,
    // To those who may not read everything, a missing source and a hidden one get the same refusal.
    async find({ sourceLocation }, _, { tableAt }) {
      return [{ ...table("queryTable", (await tableAt(sourceLocation)) ?? []), unnamed: true }];
    },
  },
  registerTable: {
    ...TABLE_AND_OTHERS,
    // The table that has the name until then loses it.
    more: ({ mode }, id) => (mayDisplace(mode) ? [table("deregisterTable", id)] : []),
    // The table of the root gets another name.
    find: ({ location }, id, lookups) => placeOf("renameTable", location, id, lookups),
  },
  deregisterTable: TABLE,
  dropTable: TABLE,
  renameTable: {
    ...TABLE,
    more({ newNamespaceId, newTableName }, id) {
      const parent = newNamespaceId.length > 0 ? newNamespaceId : id.slice(0, -1);
      return [table("renameTable", [...parent, newTableName])];
    },
  },
  describeTable: TABLE,
  tableExists: TABLE,
  getTableStats: TABLE,

  insertIntoTable: TABLE,
  mergeInsertIntoTable: TABLE,
  updateTable: TABLE,
  deleteFromTable: TABLE,
  createMultipartWrite: TABLE,
  completeMultipartWrite: TABLE,
  abortMultipartWrite: TABLE,
  queryTable: TABLE,
  countTableRows: TABLE,
  explainTableQueryPlan: {
    ...TABLE_AND_OTHERS,
    // The query is a whole request, which another server may read for its table.
    more: ({ query: { id = [], identifier, delimiter } = {} }) => {
      const inner = agreedIdentifier(id, identifier, delimiter);
      return inner.length === 0 ? [] : [table("explainTableQueryPlan", inner)];
    },
  },
  analyzeTableQueryPlan: TABLE,
  prewarmIndex: TABLE,
  prewarmData: TABLE,
  fetchBlobs: TABLE,
  readBlob: TABLE,

  updateTableSchemaMetadata: TABLE,
  updateFieldMetadata: TABLE,
  alterTableAddColumns: TABLE,
  alterTableAlterColumns: TABLE,
  alterTableBackfillColumns: TABLE_AND_OTHERS,
  alterTableDropColumns: TABLE,
  addColumnsFromSchema: TABLE,

  createTableIndex: TABLE,
  createTableScalarIndex: TABLE,
  listTableIndices: TABLE,
  describeTableIndexStats: TABLE,
  dropTableIndex: TABLE,

  listTableTags: TABLE,
  getTableTagVersion: TABLE,
  createTableTag: TABLE,
  updateTableTag: TABLE,
  deleteTableTag: TABLE,
  listTableBranches: TABLE,
  createTableBranch: TABLE,
  deleteTableBranch: TABLE,
  diffBranch: TABLE,
  cherryPickBranch: TABLE,

  listTableVersions: TABLE,
  describeTableVersion: TABLE,
  restoreTable: TABLE,
  createTableVersion: TABLE_AND_OTHERS,
  batchDeleteTableVersions: TABLE,
  batchCreateTableVersions: {
    ...DATABASE,
    own: ({ entries }) =>
      entries.length === 0
        ? [objectOf("batchCreateTableVersions", "Database", [])]
        : entries.map(({ id }) => table("createTableVersion", id)),
  },
  batchCommitTables: {
    ...DATABASE,
    own: ({ operations }) =>
      operations.length === 0
        ? [objectOf("batchCommitTables", "Database", [])]
        : operations.map(({ operation }) => {
            if (operation.case !== undefined) return table(COMMITTED[operation.case], operation.value.id);
            const text = "an entry of operations must have exactly one operation";
            throw new LanceError("InvalidInput", text);
          }),
    find: ({ operations }, _, lookups) =>
      operations.flatMap(({ operation: { case: name, value } }) =>
        name === "declareTable" ? placeOf(name, value.location, value.id, lookups) : [],
      ),
  },
  describeTransaction: TRANSACTION("describeTransaction"),
  alterTransaction: TRANSACTION("alterTransaction"),

  createMaterializedView: {
    ...TABLE_AND_OTHERS,
    find: (view, _, { sourcesOf }) => sourcesOf(view).map((source) => table("queryTable", source)),
  },
  refreshMaterializedView: TABLE_AND_OTHERS,
  describeMaterializedView: TABLE,
  dropMaterializedView: TABLE,
  describeJob: JOB("describeJob"),
  cancelJob: JOB("cancelJob"),
  queryJobEvents: JOB("queryJobEvents"),

  getLsmWriteSpec: TABLE_AND_OTHERS,
  getLsmStats: TABLE_AND_OTHERS,
  setLsmWriteSpec: TABLE_AND_OTHERS,
  unsetLsmWriteSpec: TABLE_AND_OTHERS,
  manageLsm: TABLE_AND_OTHERS,
  manageFunctions: NAMESPACE_AND_OTHERS,
  manageViews: NAMESPACE_AND_OTHERS,
  manageSecrets: NAMESPACE_AND_OTHERS,
  manageAuthorization: DATABASE,
  manageJobs: DATABASE,
};

/** Whether a creation may replace a namespace. A mode that only a newer upstream knows may. */
function mayReplace(mode: CreateNamespaceMode = CreateNamespaceMode.UNSPECIFIED): boolean {
  const { UNSPECIFIED, CREATE, EXIST_OK } = CreateNamespaceMode;
  return mode !== UNSPECIFIED && mode !== CREATE && mode !== EXIST_OK;
}

/** Whether a registration may replace the table of its name. A mode that only a newer upstream knows may. */
function mayDisplace(mode: RegisterTableMode = RegisterTableMode.UNSPECIFIED): boolean {
  return mode !== RegisterTableMode.UNSPECIFIED && mode !== RegisterTableMode.CREATE;
}

/** Whether a drop may reach what is in a namespace. A behavior that only a newer upstream knows may. */
function mayCascade(behavior: DropNamespaceBehavior = DropNamespaceBehavior.UNSPECIFIED): boolean {
  return behavior !== DropNamespaceBehavior.UNSPECIFIED && behavior !== DropNamespaceBehavior.RESTRICT;
}

/** Returns everything below a namespace that may not exist yet, with the operations that remove it. */
function contentsOfAny(id: Identifier, { contentsOf }: Lookups): Promise<Touches> {
  return contentsOf(id).catch((error: unknown) => {
    if (isLanceError(error, "NamespaceNotFound")) return [];
    throw error;
  });
}

/**
 * Returns the table of the root whose place a table takes that names its location. The answer to such a call tells whether
 * there is one.
 */
function placeOf(
  operation: AnyOperation,
  location: string | undefined,
  id: Identifier,
  { rootTableAt }: Lookups,
): Touches {
  const taken = location ? rootTableAt(location) : undefined;
  if (taken === undefined || sameIdentifier(taken, id)) return [];
  return [{ ...objectOf(operation, "Table", taken), unnamed: true }];
}

/** Operations that the entries of a commit are. */
const COMMITTED = {
  declareTable: "declareTable",
  createTableVersion: "createTableVersion",
  deleteTableVersions: "batchDeleteTableVersions",
  deregisterTable: "deregisterTable",
} as const;
