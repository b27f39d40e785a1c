import type { Message } from "@bufbuild/protobuf";
import type { Identifier } from "./identifier.ts";
import { DATABASE, OBJECTS, type Row } from "./objects.ts";
import {
  type AnyOperation,
  type Lookups,
  type ObjectKind,
  objectOf,
  type Touch,
  type Touches,
} from "./touch.ts";

/** Whether an operation reaches only objects that its request names; one that the table does not have may reach others. */
export function isConfined(operation: string): boolean {
  return Object.hasOwn(OBJECTS, operation) && OBJECTS[operation as AnyOperation].confined;
}

/** Returns the kind of the object of an operation. */
export function kindOf(operation: string): ObjectKind {
  return rowOf(operation).kind;
}

/** Objects that a request reaches, with the operation on each. */
export interface Reach {
  /** The object of the call. */
  readonly own: Touches;
  /**
   * Returns other objects that the request names.
   *
   * @throws LanceError InvalidInput for names that no object can have.
   */
  more(): Touches;
  /** Looks further objects up, which only callers with a right to the others may cause. Default: there are none. */
  readonly find?: (() => Touches | Promise<Touches>) | undefined;
}

/**
 * Returns the objects that a request reaches. A method that the table does not have concerns the whole database.
 *
 * @throws LanceError InvalidInput for names that no object can have.
 */
export async function reachOf(
  operation: string,
  request: Message,
  id: Identifier,
  lookups: Lookups,
): Promise<Reach> {
  const { own, beside, more, find } = rowOf(operation);
  return {
    own: own === undefined ? [objectOfCall(operation, id)] : await own(request as never, id, lookups),
    more: () => [...(beside?.(id) ?? []), ...(more?.(request as never, id) ?? [])],
    find: find && (() => find(request as never, id, lookups)),
  };
}

/** A method that the table does not have concerns the whole database. */
function rowOf(operation: string): Row<never> {
  const rows: Readonly<Record<string, Row<never> | undefined>> = OBJECTS;
  return (Object.hasOwn(OBJECTS, operation) ? rows[operation] : undefined) ?? DATABASE;
}

/** Returns all objects of a call, its own first; undefined if its request has to be looked into. */
export function objectsById(operation: string, id: Identifier): Touches | undefined {
  const { own, beside, more, find } = rowOf(operation);
  if ((own ?? more ?? find) !== undefined) return undefined;
  const object = objectOfCall(operation, id);
  return beside === undefined ? [object] : [object, ...beside(id)];
}

function objectOfCall(operation: string, id: Identifier): Touch {
  return objectOf(operation as AnyOperation, rowOf(operation).kind, id);
}
