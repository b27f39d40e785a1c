import { create } from "@bufbuild/protobuf";
import {
  CreateNamespaceMode,
  CreateNamespaceResponseSchema,
  DescribeNamespaceResponseSchema,
  DropNamespaceBehavior,
  DropNamespaceMode,
  DropNamespaceResponseSchema,
  NamespaceExistsResponseSchema,
} from "../../../../gen/lance/namespace/v1/namespace_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { checkNewName, type Identifier, joinIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../namespace/pace.ts";
import type { ChangeContext } from "../../batch/change-context.ts";
import type { Draft } from "../../catalog/draft.ts";
import type { Row } from "../../catalog/row.ts";
import { checkProperties } from "../properties.ts";
import { mutateAndRemove } from "../tables/drop.ts";
import {
  isNamespace,
  isUnlistedTable,
  mayBeUnlisted,
  namespaceNotFound,
  objectIdOf,
  requireParent,
} from "../tables/lookup.ts";

type Operations = Pick<
  LanceNamespace,
  "createNamespace" | "describeNamespace" | "dropNamespace" | "namespaceExists"
>;

/** The operations on single namespaces. */
export function createNamespaceOperations(context: ChangeContext): Operations {
  const { catalog } = context;

  async function requireNamespace(id: Identifier): Promise<Row | undefined> {
    const state = await catalog.read();
    if (!isNamespace(state, id)) throw namespaceNotFound(id);
    return state.get(objectIdOf(id));
  }

  return {
    async createNamespace({ mode, properties }, { id, signal, removable }) {
      if (id.length === 0) throw alreadyExists(id);
      for (const name of id) checkNewName(name);
      checkProperties(properties);
      if (mayBeUnlisted(id) && (await isUnlistedTable(context, await catalog.read(), id)))
        throw alreadyExists(id);
      function* createIn(draft: Draft): Steps<Readonly<Record<string, string>>> {
        requireParent(draft, id);
        const existing = draft.get(objectIdOf(id));
        if (existing !== undefined && existing.objectType !== "namespace") throw alreadyExists(id);
        if (existing !== undefined && mode === CreateNamespaceMode.EXIST_OK) {
          return existing.properties;
        }
        if (existing !== undefined && mode !== CreateNamespaceMode.OVERWRITE) throw alreadyExists(id);
        yield* deleteBelow(draft, objectIdOf(id), removable);
        draft.put({ objectId: objectIdOf(id), objectType: "namespace", location: undefined, properties });
        return properties;
      }
      const answer = await mutateAndRemove(context, createIn, signal);
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
    async dropNamespace({ mode, behavior }, { id, signal, removable }) {
      if (id.length === 0) throw new LanceError("InvalidInput", "the root namespace cannot be dropped");
      const objectId = objectIdOf(id);
      const cascades = behavior === DropNamespaceBehavior.CASCADE;
      function* dropIn(draft: Draft): Steps<Readonly<Record<string, string>>> {
        const row = draft.get(objectId);
        if (row?.objectType !== "namespace") {
          if (mode === DropNamespaceMode.SKIP) return {};
          throw namespaceNotFound(id);
        }
        if (!cascades && draft.hasChildren(objectId)) {
          throw new LanceError("NamespaceNotEmpty", `Namespace not empty: '${joinIdentifier(id)}'`);
        }
        yield* deleteBelow(draft, objectId, removable);
        draft.delete(objectId);
        return row.properties;
      }
      const properties = await mutateAndRemove(context, dropIn, signal);
      return create(DropNamespaceResponseSchema, { properties: { ...properties } });
    },
  };
}

/**
 * Deletes everything below a namespace, in steps, which throw LanceError ConcurrentModification if something is there that
 * is not among the given names: it came after the decision about the rights of the caller.
 */
function* deleteBelow(draft: Draft, objectId: string, names: ReadonlySet<string> | undefined): Steps<void> {
  if (!draft.hasChildren(objectId)) return;
  let count = 0;
  for (const id of draft.descendants(objectId)) {
    if (names !== undefined && !names.has(id.slice(objectId.length + 1))) {
      throw new LanceError(
        "ConcurrentModification",
        "something was made in the namespace meanwhile; try again",
      );
    }
    draft.delete(id);
    if (++count % ITEMS_PER_STEP === 0) yield;
  }
}

function alreadyExists(id: Identifier): LanceError {
  return new LanceError("NamespaceAlreadyExists", `Namespace already exists: ${joinIdentifier(id)}`);
}
