import { create } from "@bufbuild/protobuf";
import {
  DescribeNamespaceResponseSchema,
  ListNamespacesResponseSchema,
  NamespaceExistsResponseSchema,
} from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { ListTablesResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";

/**
 * The root above databases that are namespaces of it: it lists them, and it has no tables of its own. Everything
 * below a database is that database's affair.
 */
export function createDatabasesBackend(names: readonly string[]): Backend {
  const sorted = [...names].sort();
  return {
    name: "databases",
    hasPlainPageTokens: true,
    operations: {
      async listNamespaces({ pageToken = "", limit = 0 }) {
        const rest = sorted.filter((name) => name > pageToken);
        const namespaces = limit > 0 ? rest.slice(0, limit) : rest;
        const last = namespaces.length < rest.length ? namespaces.at(-1) : undefined;
        return create(ListNamespacesResponseSchema, { namespaces, ...(last && { pageToken: last }) });
      },
      describeNamespace: async () => create(DescribeNamespaceResponseSchema),
      namespaceExists: async () => create(NamespaceExistsResponseSchema),
      listTables: async () => create(ListTablesResponseSchema),
    },
    ready: async () => true,
    close: async () => {},
  };
}
