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
import type { CatalogView, Draft } from "../catalog/state.ts";
import type { DirContext } from "./context.ts";
import { mutateAndRemove } from "./drop.ts";
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
    async createNamespace({ mode, properties }, { id, signal }) {
      if (id.length === 0) throw alreadyExists(id);
      for (const name of id) checkNewName(name);
      const state = await catalog.read();
      if (await isUnlistedTable(context, state, id)) throw alreadyExists(id);
      const expected = mode === CreateNamespaceMode.OVERWRITE ? locationsBelow(state, objectIdOf(id)) : [];
      const createIn = (draft: Draft) => {
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
      };
      const { answer } = await mutateAndRemove(context, expected, createIn, signal);
      return create(CreateNamespaceResponseSchema, { properties: { ...answer } });
    },
    async describeNamespace(_request, { id }) {
      const row = await requireNamespace(id);
      const properties = id.length === 0 ? await catalog.rootProperties() : row?.properties;
      return create(DescribeNamespaceResponseSchema, { properties: { ...properties } });
    },
    async namespaceExists(_request, { id }) {
      await requireNamespace(id);
      return create(NamespaceExistsResponseSchema);
    },
    async dropNamespace({ mode, behavior }, { id, signal }) {
      if (id.length === 0) throw new LanceError("InvalidInput", "the root namespace cannot be dropped");
      const objectId = objectIdOf(id);
      const cascades = behavior === DropNamespaceBehavior.CASCADE;
      const expected = cascades ? locationsBelow(await catalog.read(), objectId) : [];
      const dropIn = (draft: Draft) => {
        const row = draft.get(objectId);
        if (row?.objectType !== "namespace") {
          if (mode === DropNamespaceMode.SKIP) return { properties: {}, removed: [] };
          throw namespaceNotFound(id);
        }
        if (!cascades && draft.hasChildren(objectId)) {
          throw new LanceError("NamespaceNotEmpty", `namespace ${joinIdentifier(id)} is not empty`);
        }
        const locations = deleteBelow(draft, objectId);
        draft.delete(objectId);
        return { properties: row.properties, removed: locations };
      };
      const { properties } = await mutateAndRemove(context, expected, dropIn, signal);
      return create(DropNamespaceResponseSchema, { properties: { ...properties } });
    },
  };
}

/** The locations of all tables below a namespace. */
function locationsBelow(view: CatalogView, objectId: string): string[] {
  if (!view.hasChildren(objectId)) return [];
  return [...view.descendants(objectId)].flatMap((id) => view.get(id)?.location ?? []);
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
