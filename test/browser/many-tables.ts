import { create } from "@bufbuild/protobuf";
import {
  DescribeNamespaceResponseSchema,
  ListNamespacesResponseSchema,
} from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { ListTablesResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import type { Backend } from "../../src/namespace/lance-namespace.ts";

const NAMES = Array.from({ length: 100_000 }, (_, at) => `table_${String(at).padStart(6, "0")}`);

/** A backend with a hundred thousand tables that exist by name only. */
export const MANY_TABLES: Backend = {
  name: "many",
  operations: {
    describeNamespace: async () => create(DescribeNamespaceResponseSchema),
    listNamespaces: async () => create(ListNamespacesResponseSchema),
    async listTables({ pageToken, limit = 100 }) {
      const start = Number(pageToken ?? 0);
      const end = start + limit;
      return create(ListTablesResponseSchema, {
        tables: NAMES.slice(start, end),
        ...(end < NAMES.length && { pageToken: String(end) }),
      });
    },
  },
  ready: async () => true,
  close: async () => {},
};
