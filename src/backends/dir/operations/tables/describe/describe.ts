import { pathToFileURL } from "node:url";
import { create } from "@bufbuild/protobuf";
import {
  DescribeTableResponseSchema,
  TableExistsResponseSchema,
} from "../../../../../gen/lance/namespace/v1/table_pb.ts";
import type { LanceNamespace } from "../../../../../namespace/lance-namespace.ts";
import type { CatalogDataContext, DirectAccessContext } from "../../context.ts";
import { credentialsFor, directAccess } from "../direct-access.ts";
import { requireTable } from "../find-table.ts";
import { withData } from "../open-data.ts";
import { checkReference, describeData } from "./describe-data.ts";

/** The operations that describe a table. */
export function createDescribeOperations(
  context: CatalogDataContext & DirectAccessContext,
): Pick<LanceNamespace, "describeTable" | "tableExists"> {
  return {
    async describeTable(request, call) {
      checkReference(request);
      const { id } = call;
      const table = await requireTable(context, { id });
      const credentials = await credentialsFor(context, table.path, request, call);
      const response = create(DescribeTableResponseSchema, {
        table: id.at(-1) ?? "",
        namespace: id.slice(0, -1),
        location: table.path,
        properties: { ...table.properties },
        ...directAccess(context, table.properties, credentials),
        ...(request.withTableUri && { tableUri: uriOf(context, table.path) }),
      });
      return Object.assign(response, await describeData(context, table, request));
    },
    async tableExists({ version }, { id }) {
      const table = await requireTable(context, { id });
      if (version !== undefined)
        await withData(context, table, { version, readsNoRows: true }, async () => {});
      return create(TableExistsResponseSchema);
    },
  };
}

/** Returns a location as a URI, for any storage. */
function uriOf({ store }: CatalogDataContext, path: string): string {
  return store.files === undefined ? path : pathToFileURL(path).href;
}
