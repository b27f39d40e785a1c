import { create } from "@bufbuild/protobuf";
import {
  DescribeMaterializedViewResponseSchema,
  DropMaterializedViewResponseSchema,
  ListMaterializedViewsResponseSchema,
} from "../../../../gen/lance/gateway/v1/view_pb.ts";
import { DropTableRequestSchema } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import type { LanceDbExtensions, LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { CatalogDataContext, PageContext } from "../context.ts";
import { decodeToken, encodeToken, pageSize } from "../paging.ts";
import { requireTable } from "../tables/find-table.ts";
import { isNamespace, namespaceNotFound, objectIdOf } from "../tables/naming/object-names.ts";
import { datasetOf } from "../tables/open-data.ts";
import { unlessLost } from "../versions/versions.ts";
import { isView, readDefinition } from "./definition.ts";
import { parseViewQuery } from "./query-text.ts";
import { readState } from "./view-state.ts";

/** Number of names that are taken from the catalog at a time. */
const NAMES = 1000;

/** The calls on materialized views that only LanceDB's remote clients have. */
export function createViewExtensions(
  context: CatalogDataContext & PageContext,
  dropTable: LanceNamespace["dropTable"],
): Pick<LanceDbExtensions, "listMaterializedViews" | "describeMaterializedView" | "dropMaterializedView"> {
  const { catalog } = context;

  /** Returns the views below a namespace after a name, in their order, up to a number of them. */
  async function viewsAfter(namespace: string, start: string, count: number): Promise<string[]> {
    const views: string[] = [];
    for (let after = start; ; ) {
      const state = await catalog.read();
      const names = state.children(namespace, "table", after, NAMES);
      for (const name of names) {
        const row = state.get(namespace === "" ? name : `${namespace}$${name}`);
        if (row !== undefined && isView(row.properties)) views.push(name);
        if (views.length === count) return views;
      }
      const last = names.at(-1);
      if (last === undefined || names.length < NAMES) return views;
      after = last;
    }
  }

  return {
    async listMaterializedViews({ pageToken, limit }, { id }) {
      const state = await catalog.read();
      if (!isNamespace(state, id)) throw namespaceNotFound(id);
      const count = pageSize(context, limit);
      const views = await viewsAfter(objectIdOf(id), decodeToken("views", pageToken) ?? "", count + 1);
      const page = views.slice(0, count);
      const last = page.at(-1);
      const more = views.length > count && last !== undefined;
      return create(ListMaterializedViewsResponseSchema, {
        views: page,
        ...(more && { pageToken: encodeToken("views", last) }),
      });
    },
    async describeMaterializedView(_request, { id }) {
      const view = await requireTable(context, { id });
      const { sourceQuery, autoRefresh } = readDefinition(view);
      const { manifest } = await unlessLost(context, { id }, readVersion(datasetOf(context, view)));
      const state = readState(manifest);
      const { source } = parseViewQuery(sourceQuery);
      return create(DescribeMaterializedViewResponseSchema, {
        query: sourceQuery,
        sourceTable: source.at(-1) ?? "",
        sourceNamespace: source.slice(0, -1),
        autoRefresh,
        version: manifest.version,
        ...(state !== undefined && { sourceVersion: BigInt(state.sourceVersion) }),
      });
    },
    async dropMaterializedView(_request, call) {
      readDefinition(await requireTable(context, call));
      await dropTable(create(DropTableRequestSchema), call);
      return create(DropMaterializedViewResponseSchema);
    },
  };
}
