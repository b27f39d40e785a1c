import { isRead } from "../../../namespace/actions.ts";
import type { Call } from "../../../namespace/call.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import type { Writer } from "./activity.ts";

type Operations = Pick<Backend, "operations" | "extensions">;

/** Gets the object of an operation that may have written, and who has committed. */
export type NoteWrite = (id: Identifier, by?: Writer) => void;

/** Operations that only add a name, without data that upkeep could look after or a view could read. */
const WITHOUT_DATA: ReadonlySet<string> = new Set(["createNamespace", "declareTable"]);

/** Notes the object of each operation that may write data, once it has ended. */
export function noteWrites(note: NoteWrite, all: Operations): Operations {
  return { operations: noting(note, all.operations), extensions: noting(note, all.extensions) };
}

function noting(note: NoteWrite, handlers: object = {}): object {
  return Object.fromEntries(
    Object.entries(handlers).map(([localName, handler]) => [
      localName,
      isRead({ localName }) || WITHOUT_DATA.has(localName)
        ? handler
        : noted(note, localName === "createTableVersion" ? "client" : "gateway", handler),
    ]),
  );
}

type Handler = (...args: [...unknown[], Call]) => Promise<unknown>;

function noted(note: NoteWrite, by: Writer, handler: Handler): Handler {
  return async (...args) => {
    try {
      return await handler(...args);
    } finally {
      note((args.at(-1) as Call).id, by);
    }
  };
}
