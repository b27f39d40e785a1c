import type { Identifier } from "../../../namespace/identifier.ts";
import {
  type AnyHandler,
  type BackendOperations,
  callIn,
  wrapOperations,
} from "../../../namespace/lance-namespace.ts";
import type { ChangeType } from "../../../namespace/operations/change-types.ts";
import { factsOf, isReadOperation } from "../../../namespace/operations/operations.ts";
import type { Writer } from "./activity.ts";

/** Gets the object of an operation that may have written, and who has committed. */
export type NoteWrite = (id: Identifier, by?: Writer) => void;

/** Changes that only add a name, without data that upkeep could look after or a view could read. */
const WITHOUT_DATA: ReadonlySet<ChangeType | undefined> = new Set<ChangeType>([
  "namespace.created",
  "table.declared",
]);

/** Notes the object of each operation that may write data, once it has ended. The calls of drivers name none. */
export function noteWrites(note: NoteWrite, all: BackendOperations): BackendOperations {
  return wrapOperations(all, (handler, localName) => {
    const { event, checksKey = false } = factsOf(localName) ?? {};
    return isReadOperation(localName) || checksKey || WITHOUT_DATA.has(event)
      ? handler
      : noted(note, localName === "createTableVersion" ? "client" : "gateway", handler);
  });
}

function noted(note: NoteWrite, by: Writer, handler: AnyHandler): AnyHandler {
  return async (...args) => {
    try {
      return await handler(...args);
    } finally {
      note(callIn(args).id, by);
    }
  };
}
