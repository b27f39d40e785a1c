import type { Message } from "@bufbuild/protobuf";
import type { CloneTableRequest } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import {
  CreateNamespaceMode,
  type CreateNamespaceRequest,
  DropNamespaceBehavior,
  type DropNamespaceRequest,
} from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { Reach as Way } from "../../gen/lance/namespace/v1/options_pb.ts";
import type { ExplainTableQueryPlanRequest } from "../../gen/lance/namespace/v1/query_pb.ts";
import {
  type DeclareTableRequest,
  RegisterTableMode,
  type RegisterTableRequest,
  type RenameTableRequest,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { BatchCommitTablesRequest } from "../../gen/lance/namespace/v1/transaction_pb.ts";
import type { BatchCreateTableVersionsRequest } from "../../gen/lance/namespace/v1/version_pb.ts";
import type { CreateMaterializedViewRequest } from "../../gen/lance/namespace/v1/view_pb.ts";
import { LanceError } from "../errors.ts";
import { agreedIdentifier, type Identifier, sameIdentifier } from "../identifier.ts";
import { factsOf, type OperationFacts } from "./operations.ts";
import { type AnyOperation, type Lookups, namespace, objectOf, type Touches, table } from "./touch.ts";

/** Objects that a request reaches, with the operation on each. */
export interface Reach {
  /** The object of the call. */
  readonly own: Touches;
  /**
   * Returns other objects that the request names.
   *
   * @throws LanceError InvalidInput for names that no object can have.
   */
  more(): Touches;
  /** Looks further objects up, which only callers with a right to the others may cause. Default: there are none. */
  readonly find?: (() => Touches | Promise<Touches>) | undefined;
}

/** How a request leads to objects other than the one that the identifier of its call names. */
export interface Leads<R> {
  /** Returns the objects that replace the object of the call. Default: that one. */
  own?(operation: AnyOperation, request: R, id: Identifier, lookups: Lookups): Touches | Promise<Touches>;
  /** Returns further objects that the request names. Default: none. */
  more?(operation: AnyOperation, request: R, id: Identifier): Touches;
  /** Returns further objects that have to be looked up. Default: none. */
  find?(operation: AnyOperation, request: R, id: Identifier, lookups: Lookups): Touches | Promise<Touches>;
}

/** Returns how the requests of an operation lead to other objects. */
export function leadsOf({ by, reach }: Pick<OperationFacts, "by" | "reach">): Leads<Message> {
  return (by === undefined ? WAYS[reach as keyof typeof WAYS] : INDIRECT[by]) ?? {};
}

/**
 * Returns the objects that a request reaches. An unknown method concerns the whole database.
 *
 * @throws LanceError InvalidInput for names that no object can have.
 */
export async function reachOf(
  operation: string,
  request: Message,
  id: Identifier,
  lookups: Lookups,
): Promise<Reach> {
  const name = operation as AnyOperation;
  const facts = factsOf(operation);
  const { own, more, find } = facts === undefined ? {} : leadsOf(facts);
  return {
    own: own === undefined ? [objectOfCall(name, facts, id)] : await own(name, request, id, lookups),
    more: () => [...besides(facts, id), ...(more?.(name, request, id) ?? [])],
    find: find && (() => find(name, request, id, lookups)),
  };
}

/** Returns all objects of a call, its own first; undefined if its request has to be looked into. */
export function objectsById(
  operation: AnyOperation,
  facts: OperationFacts,
  id: Identifier,
): Touches | undefined {
  const { own, more, find } = leadsOf(facts);
  if ((own ?? more ?? find) !== undefined) return undefined;
  return [objectOfCall(operation, facts, id), ...besides(facts, id)];
}

function objectOfCall(
  operation: AnyOperation,
  facts: OperationFacts | undefined,
  id: Identifier,
): Touches[0] {
  return objectOf(operation, facts?.kind ?? "Database", id);
}

/** Lists are of what the caller may see; whether a namespace exists shows only to callers who may see it. */
function besides(facts: OperationFacts | undefined, id: Identifier): Touches {
  const isListed = facts?.action === "list" && facts.kind === "Namespace" && id.length > 0;
  return isListed ? [namespace("describeNamespace", id)] : [];
}

const INDIRECT: Readonly<Record<NonNullable<OperationFacts["by"]>, Leads<never>>> = {
  transaction: { own: (operation, _, id) => [table(operation, id.slice(0, -1))] },
  job: {
    async own(operation, { jobId }: Message & { readonly jobId: string }, _, { tableOfJob }) {
      const found = await tableOfJob(jobId);
      if (found !== undefined) return [table(operation, found)];
      throw new LanceError("TransactionNotFound", `there is no job ${JSON.stringify(jobId)}`);
    },
  },
};

const REPLACED: Leads<CreateNamespaceRequest> = {
  more: (_, { mode }, id) => (mayReplace(mode) ? [namespace("dropNamespace", id)] : []),
  find: (_, { mode }, id, lookups) => (mayReplace(mode) ? lookups.contentsOf(id) : []),
};

const CONTENTS: Leads<DropNamespaceRequest> = {
  find: (_, { behavior }, id, lookups) => (mayCascade(behavior) ? lookups.contentsOf(id) : []),
};

const LOCATION: Leads<DeclareTableRequest> = {
  find: (operation, { location }, id, lookups) => placeOf(operation, location, id, lookups),
};

const DISPLACED: Leads<RegisterTableRequest> = {
  // The table that has the name until then loses it.
  more: (_, { mode }, id) => (mayDisplace(mode) ? [table("deregisterTable", id)] : []),
  // The table of the root gets another name.
  find: (_, { location }, id, lookups) => placeOf("renameTable", location, id, lookups),
};

const NEW_NAME: Leads<RenameTableRequest> = {
  more: (operation, { newNamespaceId, newTableName }, id) => {
    const parent = newNamespaceId.length > 0 ? newNamespaceId : id.slice(0, -1);
    return [table(operation, [...parent, newTableName])];
  },
};

const SOURCE_LOCATION: Leads<CloneTableRequest> = {
  // To those who may not read everything, a missing source and a hidden one get the same refusal.
  async find(_, { sourceLocation }, __, { tableAt }) {
    return [{ ...table("queryTable", (await tableAt(sourceLocation)) ?? []), unnamed: true }];
  },
};

const SOURCE_QUERY: Leads<CreateMaterializedViewRequest> = {
  find: (_, view, __, { sourcesOf }) => sourcesOf(view).map((source) => table("queryTable", source)),
};

const QUERY: Leads<ExplainTableQueryPlanRequest> = {
  // The query is a whole request, which another server may read for its table.
  more(operation, { query: { id = [], identifier, delimiter } = {} }) {
    const inner = agreedIdentifier(id, identifier, delimiter);
    return inner.length === 0 ? [] : [table(operation, inner)];
  },
};

const ENTRIES: Leads<BatchCreateTableVersionsRequest> = {
  own: (operation, { entries }) =>
    entries.length === 0
      ? [objectOf(operation, "Database", [])]
      : entries.map(({ id }) => table("createTableVersion", id)),
};

const OPERATIONS: Leads<BatchCommitTablesRequest> = {
  own: (name, { operations }) =>
    operations.length === 0
      ? [objectOf(name, "Database", [])]
      : operations.map(({ operation }) => {
          if (operation.case !== undefined) return table(COMMITTED[operation.case], operation.value.id);
          const text = "an entry of operations must have exactly one operation";
          throw new LanceError("InvalidInput", text);
        }),
  find: (_, { operations }, __, lookups) =>
    operations.flatMap(({ operation: { case: name, value } }) =>
      name === "declareTable" ? placeOf(name, value.location, value.id, lookups) : [],
    ),
};

const WAYS: Readonly<Record<Exclude<Way, 0>, Leads<never> | undefined>> = {
  [Way.REPLACED]: REPLACED,
  [Way.CONTENTS]: CONTENTS,
  [Way.LOCATION]: LOCATION,
  [Way.DISPLACED]: DISPLACED,
  [Way.NEW_NAME]: NEW_NAME,
  [Way.SOURCE_LOCATION]: SOURCE_LOCATION,
  [Way.SOURCE_QUERY]: SOURCE_QUERY,
  [Way.QUERY]: QUERY,
  [Way.ENTRIES]: ENTRIES,
  [Way.OPERATIONS]: OPERATIONS,
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
