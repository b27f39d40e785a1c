import { create } from "@bufbuild/protobuf";
import { jsonSchemaSteps } from "../../../../arrow/json-schema.ts";
import { type ArrowSchema, decodeSchema } from "../../../../arrow/schema.ts";
import {
  CreateViewResponseSchema,
  DescribeViewResponseSchema,
  DropViewResponseSchema,
  ListViewsResponseSchema,
} from "../../../../gen/lance/gateway/v1/sql_view_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { checkIdentifier, type Identifier, joinIdentifier } from "../../../../namespace/identifier.ts";
import type { ViewOperations } from "../../../../namespace/lance-namespace.ts";
import { defaultNamespaceOf, planView } from "../../../../namespace/plan-view.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import type { Draft } from "../../catalog/state/draft.ts";
import { type Row, VIEW_KIND, VIEW_PROPERTIES, VIEW_PROPERTY } from "../../catalog/state/row.ts";
import type { CatalogDataContext, PageContext } from "../context.ts";
import { decodeToken, encodeToken, pageSize } from "../paging.ts";
import { checkProperties } from "../properties.ts";
import {
  checkNewIdentifier,
  isUnlistedTable,
  objectIdOf,
  requireListed,
  requireParent,
  tableExists,
} from "../tables/naming/object-names.ts";

const NAMESPACE = `${VIEW_PROPERTIES}namespace`;
const SCHEMA = `${VIEW_PROPERTIES}schema`;

/** A view as the catalog has it. */
interface StoredView {
  readonly query: string;
  /** Namespace of tables that the query names without one. */
  readonly namespace: readonly string[];
  /** Columns of the result when the view was created: one encapsulated IPC message, a schema. */
  readonly schema: Uint8Array;
  readonly columns: ArrowSchema;
}

/** The operations on views, which are rows of the catalog alone. */
export function createSqlViewOperations(context: CatalogDataContext & PageContext): ViewOperations {
  const { catalog } = context;

  return {
    async createView(request, call) {
      const { id } = call;
      const { query, replace = false } = request;
      await checkNewIdentifier(context, id);
      const namespace = defaultNamespaceOf(request, id);
      checkIdentifier(namespace);
      const schema = await planView(call);
      const view = { query, namespace, schema, columns: columnsOf(schema) };
      const properties = toProperties(view);
      checkProperties(catalog.limits.objectBytes, id, properties);
      if (await isUnlistedTable(context, await catalog.read(), id)) throw tableExists(id);
      await catalog.mutate((draft: Draft) => {
        requireParent(draft, id);
        const existing = draft.get(objectIdOf(id));
        if (existing !== undefined && !(replace && existing.objectType === VIEW_KIND)) throw tableExists(id);
        draft.put({ objectId: objectIdOf(id), objectType: VIEW_KIND, location: undefined, properties });
      });
      return create(CreateViewResponseSchema, await descriptionOf(id, view));
    },
    async describeView(_request, { id }) {
      const row = (await catalog.read()).get(objectIdOf(id));
      const view = readView(row, id);
      return create(DescribeViewResponseSchema, {
        ...(await descriptionOf(id, view)),
        arrowSchema: view.schema,
      });
    },
    async listViews({ pageToken, limit }, { id }) {
      const state = await catalog.read();
      requireListed(state, id);
      const count = pageSize(context, limit);
      const after = decodeToken("view", pageToken) ?? "";
      const views = state.children(objectIdOf(id), VIEW_KIND, after, count + 1);
      const last = views[count - 1];
      const more = views.length > count && last !== undefined;
      return create(ListViewsResponseSchema, {
        views: views.slice(0, count),
        ...(more && { pageToken: encodeToken("view", last) }),
      });
    },
    async dropView(_request, { id }) {
      await catalog.mutate((draft: Draft) => {
        const row = draft.get(objectIdOf(id));
        if (row?.objectType !== VIEW_KIND) throw viewNotFound(id);
        // To other programs a view is a namespace.
        if (draft.hasChildren(row.objectId))
          throw new LanceError("NamespaceNotEmpty", "another program has made objects below the view");
        draft.delete(row.objectId);
      });
      return create(DropViewResponseSchema);
    },
  };
}

function toProperties({ query, namespace, schema }: Omit<StoredView, "columns">): Record<string, string> {
  return {
    [VIEW_PROPERTY]: query,
    [NAMESPACE]: JSON.stringify(namespace),
    [SCHEMA]: Buffer.from(schema).toString("base64"),
  };
}

/** @throws LanceError TableNotFound for another object or none; Internal for a row that another program has written */
function readView(row: Row | undefined, id: Identifier): StoredView {
  if (row?.objectType !== VIEW_KIND) throw viewNotFound(id);
  const { [VIEW_PROPERTY]: query, [NAMESPACE]: namespace, [SCHEMA]: schema } = row.properties;
  try {
    const names: unknown = JSON.parse(namespace ?? "");
    if (query !== undefined && schema !== undefined && isNames(names)) {
      const message = Buffer.from(schema, "base64");
      return { query, namespace: names, schema: message, columns: columnsOf(message) };
    }
  } catch {
    // Another program has written it.
  }
  throw new LanceError("Internal", `the row of the view ${joinIdentifier(id)} in the catalog is damaged`);
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

/** Returns the fields of an answer that describes a view. */
async function descriptionOf(id: Identifier, { query, namespace, columns }: StoredView) {
  return {
    ...{ name: id.at(-1) ?? "", namespace: id.slice(0, -1), query, defaultNamespace: [...namespace] },
    schema: await inSlices(jsonSchemaSteps(columns)),
  };
}

/** Bytes before the metadata of an encapsulated message. */
const PREFIX_BYTES = 8;

function columnsOf(message: Uint8Array): ArrowSchema {
  return decodeSchema(message.subarray(PREFIX_BYTES));
}

function viewNotFound(id: Identifier): LanceError {
  return new LanceError("TableNotFound", `View '${joinIdentifier(id)}' was not found`);
}
