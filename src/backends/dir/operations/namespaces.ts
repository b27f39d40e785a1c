import { create } from "@bufbuild/protobuf";
import {
  CreateNamespaceMode,
  CreateNamespaceResponseSchema,
  DescribeNamespaceResponseSchema,
  DropNamespaceBehavior,
  DropNamespaceMode,
  DropNamespaceResponseSchema,
  NamespaceExistsResponseSchema,
} from "../../../gen/lance/namespace/v1/namespace_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { checkNewName, type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import type { Row } from "../catalog/row.ts";
import type { Draft } from "../catalog/state.ts";
import type { DirContext } from "./context.ts";
import { removeTables } from "./drop.ts";
import { isNamespace, isUnlistedTable, namespaceNotFound, objectIdOf, requireParent } from "./lookup.ts";

type Operations = Pick<
  LanceNamespace,
  "createNamespace" | "describeNamespace" | "dropNamespace" | "namespaceExists"
>;

/** The operations on single namespaces. */
export function createNamespaceOperations(context: DirContext): Operations {
  const { catalog } = context;

  async function requireNamespace(id: Identifier): Promise<Row | undefined> {
    const state = await catalog.read();
    if (!isNamespace(state, id)) throw namespaceNotFound(id);
    return state.get(objectIdOf(id));
  }

  return {
    async createNamespace({ mode, properties }, { id }) {
      if (id.length === 0) throw alreadyExists(id);
      for (const name of id) checkNewName(name);
      if (await isUnlistedTable(context, await catalog.read(), id)) throw alreadyExists(id);
      const { answer, removed } = await catalog.mutate((draft) => {
        requireParent(draft, id);
        const existing = draft.get(objectIdOf(id));
        if (existing !== undefined && existing.objectType !== "namespace") throw alreadyExists(id);
        if (existing !== undefined && mode === CreateNamespaceMode.EXIST_OK) {
          return { answer: existing.properties, removed: [] };
        }
        if (existing !== undefined && mode !== CreateNamespaceMode.OVERWRITE) throw alreadyExists(id);
        const locations = deleteBelow(draft, objectIdOf(id));
        draft.put({ objectId: objectIdOf(id), objectType: "namespace", location: undefined, properties });
        return { answer: properties, removed: locations };
      });
      await removeTables(context, removed);
      return create(CreateNamespaceResponseSchema, { properties: { ...answer } });
    },
    async describeNamespace(_request, { id }) {
      const row = await requireNamespace(id);
      return create(DescribeNamespaceResponseSchema, { properties: { ...row?.properties } });
    },
    async namespaceExists(_request, { id }) {
      await requireNamespace(id);
      return create(NamespaceExistsResponseSchema);
    },
    async dropNamespace({ mode, behavior }, { id }) {
      if (id.length === 0) throw new LanceError("InvalidInput", "the root namespace cannot be dropped");
      const objectId = objectIdOf(id);
      const { properties, removed } = await catalog.mutate((draft) => {
        const row = draft.get(objectId);
        if (row?.objectType !== "namespace") {
          if (mode === DropNamespaceMode.SKIP) return { properties: {}, removed: [] };
          throw namespaceNotFound(id);
        }
        if (behavior !== DropNamespaceBehavior.CASCADE && draft.hasChildren(objectId)) {
          throw new LanceError("NamespaceNotEmpty", `namespace ${joinIdentifier(id)} is not empty`);
        }
        const locations = deleteBelow(draft, objectId);
        draft.delete(objectId);
        return { properties: row.properties, removed: locations };
      });
      await removeTables(context, removed);
      return create(DropNamespaceResponseSchema, { properties: { ...properties } });
    },
  };
}

/** Deletes everything below a namespace and returns the locations of the tables among it. */
function deleteBelow(draft: Draft, objectId: string): string[] {
  if (!draft.hasChildren(objectId)) return [];
  const locations: string[] = [];
  for (const id of draft.descendants(objectId)) {
    const location = draft.get(id)?.location;
    if (location !== undefined) locations.push(location);
    draft.delete(id);
  }
  return locations;
}

function alreadyExists(id: Identifier): LanceError {
  return new LanceError("NamespaceAlreadyExists", `namespace ${joinIdentifier(id)} already exists`);
}
