import type { Message } from "@bufbuild/protobuf";
import type { Identifier } from "../identifier.ts";
import type { ChangeType } from "./change-types.ts";
import { OPERATIONS } from "./operations.ts";
import { reachOf } from "./reach.ts";
import type { AnyOperation, Lookups, ObjectKind } from "./touch.ts";

/** Change of an object of the catalog. */
export interface Change {
  readonly type: ChangeType;
  /** Operation that makes it; for an entry of a commit, the operation that the entry is. */
  readonly operation: AnyOperation;
  readonly kind: ObjectKind;
  readonly id: Identifier;
  /** New name of a renamed table. Default: it keeps its name. */
  readonly to?: Identifier | undefined;
  /** Place in the request of the entry that makes the change. Default: the whole request makes it. */
  readonly entry?: number | undefined;
}

/** No operation with a change needs a lookup for its own objects. */
const NO_LOOKUPS: Lookups = {
  tableOfJob: () => Promise.reject(new Error("a change of a job has no lookup")),
  contentsOf: () => Promise.reject(new Error("a change of a namespace has no lookup")),
  sourcesOf: () => [],
  tableAt: async () => undefined,
  rootTableAt: () => undefined,
};

/**
 * Returns the changes that a request makes if it succeeds, in their order: one for each of its own objects.
 * An entry of a commit is a change of its own.
 */
export async function changesOf(
  operation: AnyOperation,
  request: Message,
  id: Identifier,
): Promise<readonly Change[]> {
  const { own, more } = await reachOf(operation, request, id, NO_LOOKUPS);
  const { kind: kindOfCall, event } = OPERATIONS[operation];
  const isBatch = kindOfCall === "Database";
  const to = event === "table.renamed" ? more()[0]?.id : undefined;
  return own.flatMap(({ operation: each, kind, id: names }, entry) => {
    const type = OPERATIONS[each].event;
    if (type === undefined || kind === "Database") return [];
    return [{ type, operation: each, kind, id: names, to, entry: isBatch ? entry : undefined }];
  });
}
