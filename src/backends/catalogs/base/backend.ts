import { create } from "@bufbuild/protobuf";
import {
  CreateNamespaceMode,
  CreateNamespaceResponseSchema,
  DescribeNamespaceResponseSchema,
  DropNamespaceBehavior,
  DropNamespaceMode,
  DropNamespaceResponseSchema,
  ListNamespacesResponseSchema,
  NamespaceExistsResponseSchema,
} from "../../../gen/lance/namespace/v1/namespace_pb.ts";
import type { Call } from "../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import type { Catalog, CatalogBackendOptions } from "./catalog.ts";
import { createChecks, shown } from "./checks.ts";
import { listNames } from "./paging.ts";
import { createTableOperations } from "./tables.ts";

/**
 * Creates a backend that offers the catalog operations of the contract over a foreign catalog. It never touches files: rows are
 * Unsupported, and so is a drop, unless the catalog deletes the files itself.
 */
export function createCatalogBackend(catalog: Catalog, options: CatalogBackendOptions = {}): Backend {
  const { within = [] } = options;
  const checks = createChecks(catalog, within);
  const { full } = checks;

  async function describeNamespace(id: Identifier, call: Call) {
    const path = full(id);
    if (path.length === 0) return { properties: {} };
    checks.namespace(id);
    return catalog.describeNamespace(path, call);
  }

  return {
    name: catalog.name,
    place: options.place,
    handsOut: options.handsOut,
    missing: `the catalog keeps no rows; with --rows here, the gateway serves them`,
    operations: {
      async listNamespaces(request, call) {
        const parent = full(call.id);
        checks.names(call.id);
        // Below the deepest namespace are none, if it exists.
        if (parent.length >= catalog.depths[1]) {
          await describeNamespace(call.id, call);
          return create(ListNamespacesResponseSchema);
        }
        const { names, pageToken } = await listNames(
          (page) => catalog.listNamespaces(parent, page, call),
          request,
        );
        return create(ListNamespacesResponseSchema, {
          namespaces: names,
          ...(pageToken !== undefined && { pageToken }),
        });
      },

      async describeNamespace(_, call) {
        const { properties } = await describeNamespace(call.id, call);
        return create(DescribeNamespaceResponseSchema, { properties: { ...properties } });
      },

      async namespaceExists(_, call) {
        await describeNamespace(call.id, call);
        return create(NamespaceExistsResponseSchema);
      },

      async createNamespace({ mode, properties }, call) {
        const { id } = call;
        if (mode === CreateNamespaceMode.OVERWRITE) {
          throw new LanceError("Unsupported", `${catalog.name} cannot replace a namespace in a single step`);
        }
        if (full(id).length === within.length)
          throw new LanceError("NamespaceAlreadyExists", "the root namespace always exists");
        checks.newNamespace(id);
        if (id.length > 1) await describeNamespace(id.slice(0, -1), call);
        try {
          const kept = await catalog.createNamespace(full(id), properties, call);
          return create(CreateNamespaceResponseSchema, { properties: { ...kept } });
        } catch (error) {
          if (mode !== CreateNamespaceMode.EXIST_OK || !isLanceError(error, "NamespaceAlreadyExists"))
            throw error;
          const { properties: kept } = await describeNamespace(id, call);
          return create(CreateNamespaceResponseSchema, { properties: { ...kept } });
        }
      },

      async dropNamespace({ mode, behavior }, call) {
        const { id } = call;
        if (id.length === 0) throw new LanceError("InvalidInput", "the root namespace cannot be dropped");
        if (behavior === DropNamespaceBehavior.CASCADE) {
          throw new LanceError(
            "Unsupported",
            `${shown(id)} cannot be dropped with its tables: the files of the tables would remain`,
          );
        }
        try {
          const { properties } = await describeNamespace(id, call);
          checks.newNamespace(id);
          await catalog.dropNamespace(full(id), call);
          return create(DropNamespaceResponseSchema, { properties: { ...properties } });
        } catch (error) {
          if (mode !== DropNamespaceMode.SKIP || !isLanceError(error, "NamespaceNotFound")) throw error;
          return create(DropNamespaceResponseSchema);
        }
      },

      ...createTableOperations({ catalog, checks, options, describeNamespace }),
    },
    ready: () => catalog.ready(),
    close: () => catalog.close(),
  };
}
