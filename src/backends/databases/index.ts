import { create } from "@bufbuild/protobuf";
import {
  CreateNamespaceMode,
  CreateNamespaceResponseSchema,
  DescribeNamespaceResponseSchema,
  DropNamespaceMode,
  DropNamespaceResponseSchema,
  ListNamespacesResponseSchema,
  NamespaceExistsResponseSchema,
} from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { ListTablesResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";

/**
 * The root above databases that are namespaces of it: it lists them, and it has no tables of its own. Everything
 * below a database is that database's affair. Creating one of them succeeds if it may exist; no other is created, and none is dropped.
 */
export function createDatabasesBackend(names: readonly string[]): Backend {
  const sorted = [...names].sort();
  const isKnown = ([name = ""]: Identifier) => names.includes(name);
  return {
    name: "databases",
    place: "that of each database",
    hasPlainPageTokens: true,
    operations: {
      async listNamespaces({ pageToken = "", limit = 0 }, { id }) {
        // Each database lists its own namespaces.
        const rest = id.length > 0 ? [] : sorted.filter((name) => name > pageToken);
        const namespaces = limit > 0 ? rest.slice(0, limit) : rest;
        const last = namespaces.length < rest.length ? namespaces.at(-1) : undefined;
        return create(ListNamespacesResponseSchema, { namespaces, ...(last && { pageToken: last }) });
      },
      async createNamespace({ mode }, { id }) {
        if (!isKnown(id)) throw configured(id, "it lacks");
        if (mode === CreateNamespaceMode.OVERWRITE) throw configured(id, "it has");
        if (mode !== CreateNamespaceMode.EXIST_OK)
          throw new LanceError("NamespaceAlreadyExists", `the database ${nameOf(id)} exists`);
        return create(CreateNamespaceResponseSchema);
      },
      async dropNamespace({ mode }, { id }) {
        if (isKnown(id)) throw configured(id, "it has");
        if (mode === DropNamespaceMode.SKIP) return create(DropNamespaceResponseSchema);
        throw new LanceError("NamespaceNotFound", `there is no database ${nameOf(id)}`);
      },
      describeNamespace: async () => create(DescribeNamespaceResponseSchema),
      namespaceExists: async () => create(NamespaceExistsResponseSchema),
      listTables: async () => create(ListTablesResponseSchema),
    },
    ready: async () => true,
    close: async () => {},
  };
}

function nameOf([name]: Identifier): string {
  return JSON.stringify(name);
}

/** Returns the refusal of a call that would change the list of databases. */
function configured(id: Identifier, has: string): LanceError {
  return new LanceError("Unsupported", `databases come from the configuration, and ${has} ${nameOf(id)}`);
}
