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
import { isDatabase } from "../../../../namespace/call/database-context.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import type { ChangeContext } from "../../batch/journal.ts";
import type { Draft } from "../../catalog/state/draft.ts";
import { parentId, type Row, VIEW_KIND } from "../../catalog/state/row.ts";
import { shownProperties } from "../../function-homes.ts";
import { checkProperties } from "../properties.ts";
import { mutateAndRemove } from "../tables/drop.ts";
import {
  checkNewIdentifier,
  isNamespace,
  isUnlistedTable,
  mayBeUnlisted,
  namespaceNotFound,
  objectIdOf,
  requireParent,
} from "../tables/naming/object-names.ts";
import { newProperties, noDatabase, wantsDatabase } from "./databases.ts";
import { type Departing, dropWithFunctions, notEmpty } from "./function-contents.ts";

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
    async createNamespace({ mode, properties: given, context: facts }, call) {
      const { id, signal, removable } = call;
      if (id.length === 0) throw alreadyExists(id);
      await checkNewIdentifier(context, id);
      const properties = newProperties(facts, id, given);
      checkProperties(context.catalog.limits.objectBytes, id, properties);
      if (mayBeUnlisted(id) && (await isUnlistedTable(context, await catalog.read(), id)))
        throw alreadyExists(id);
      const overwrites = mode === CreateNamespaceMode.OVERWRITE;
      function* createIn(draft: Draft, homes: Departing): Steps<Readonly<Record<string, string>>> {
        requireParent(draft, id);
        const existing = draft.get(objectIdOf(id));
        if (existing !== undefined && existing.objectType !== "namespace") throw alreadyExists(id);
        if (existing !== undefined && mode === CreateNamespaceMode.EXIST_OK) {
          if (wantsDatabase(facts, id) && !isDatabase(existing.properties)) throw noDatabase(id);
          return existing.properties;
        }
        if (overwrites) {
          homes.note(existing);
          yield* deleteBelow(draft, objectIdOf(id), { removable, homes });
        }
        // A namespace whose row another writer has left out keeps what is below it.
        else if (existing !== undefined) throw alreadyExists(id);
        draft.put({ objectId: objectIdOf(id), objectType: "namespace", location: undefined, properties });
        return properties;
      }
      const answer = await dropWithFunctions(context, call, overwrites, (departing) =>
        mutateAndRemove(context, (draft) => createIn(draft, departing()), signal),
      );
      return create(CreateNamespaceResponseSchema, { properties: shownProperties(answer) });
    },
    async describeNamespace({ context: facts }, { id }) {
      const row = await requireNamespace(id);
      if (wantsDatabase(facts, id) && !isDatabase(row?.properties)) throw noDatabase(id);
      const properties = id.length === 0 ? await catalog.rootProperties() : row?.properties;
      return create(DescribeNamespaceResponseSchema, { properties: shownProperties(properties) });
    },
    async namespaceExists(_request, { id }) {
      await requireNamespace(id);
      return create(NamespaceExistsResponseSchema);
    },
    async dropNamespace({ mode, behavior }, call) {
      const { id, signal, removable } = call;
      if (id.length === 0) throw new LanceError("InvalidInput", "the root namespace cannot be dropped");
      const objectId = objectIdOf(id);
      const cascades = behavior === DropNamespaceBehavior.CASCADE;
      function* dropIn(draft: Draft, homes: Departing): Steps<Readonly<Record<string, string>>> {
        const row = draft.get(objectId);
        if (row?.objectType !== "namespace") {
          if (mode === DropNamespaceMode.SKIP) return {};
          throw namespaceNotFound(id);
        }
        if (!cascades && !isEmpty(draft, objectId)) throw notEmpty(call);
        homes.note(row);
        yield* deleteBelow(draft, objectId, { removable, homes });
        draft.delete(objectId);
        return row.properties;
      }
      const properties = await dropWithFunctions(context, call, cascades, (departing) =>
        mutateAndRemove(context, (draft) => dropIn(draft, departing()), signal),
      );
      return create(DropNamespaceResponseSchema, { properties: shownProperties(properties) });
    },
  };
}

/** Whether nothing is below a namespace, not even below a namespace in it that has no row. */
function isEmpty(draft: Draft, objectId: string): boolean {
  if (draft.hasChildren(objectId)) return false;
  for (const _ of draft.descendants(objectId)) return false;
  return true;
}

/** Conditions of a deletion of everything below a namespace. */
interface DeletionRules {
  /** The names that may be deleted. Default: all. */
  readonly removable: ReadonlySet<string> | undefined;
  /** Gets the namespaces. */
  readonly homes: Departing;
}

/**
 * Deletes everything below a namespace, in steps, which throw a LanceError if something is there that is not among the given names:
 * NamespaceNotEmpty if no listing shows it, so that nothing can decide about it, and ConcurrentModification if it came after
 * the decision about the rights of the caller.
 */
function* deleteBelow(
  draft: Draft,
  objectId: string,
  { removable: names, homes }: DeletionRules,
): Steps<void> {
  let count = 0;
  for (const id of draft.descendants(objectId)) {
    if (names !== undefined && !names.has(id.slice(objectId.length + 1))) {
      throw refusalToDelete(isListed(draft, objectId, id));
    }
    homes.note(draft.get(id));
    draft.delete(id);
    if (++count % ITEMS_PER_STEP === 0) yield;
  }
  homes.check();
}

/** Whether listings from a namespace down lead to an object: it is of a known kind, and below namespaces with rows. */
function isListed(draft: Draft, objectId: string, id: string): boolean {
  const type = draft.get(id)?.objectType;
  if (type !== "table" && type !== "namespace" && type !== VIEW_KIND) return false;
  for (let parent = parentId(id); parent !== objectId; parent = parentId(parent))
    if (draft.get(parent)?.objectType !== "namespace") return false;
  return true;
}

function refusalToDelete(listed: boolean): LanceError {
  if (listed)
    return new LanceError(
      "ConcurrentModification",
      "something was made in the namespace meanwhile; try again",
    );
  return new LanceError(
    "NamespaceNotEmpty",
    "the namespace has contents about which nothing can decide, because a namespace around them is not declared or " +
      "their kind is unknown; create such namespaces first",
  );
}

function alreadyExists(id: Identifier): LanceError {
  return new LanceError("NamespaceAlreadyExists", `Namespace already exists: ${joinIdentifier(id)}`);
}
