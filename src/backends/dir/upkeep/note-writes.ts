import type { Call } from "../../../namespace/call.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { isRead } from "../../../namespace/reads.ts";

type Operations = Pick<Backend, "operations" | "extensions">;

/** Notes the object of each operation that may write, once it has ended. */
export function noteWrites(note: (id: Identifier) => void, all: Operations): Operations {
  return { operations: noting(note, all.operations), extensions: noting(note, all.extensions) };
}

function noting(note: (id: Identifier) => void, handlers: object = {}): object {
  return Object.fromEntries(
    Object.entries(handlers).map(([localName, handler]) => [
      localName,
      isRead({ localName }) ? handler : noted(note, handler),
    ]),
  );
}

type Handler = (...args: [...unknown[], Call]) => Promise<unknown>;

function noted(note: (id: Identifier) => void, handler: Handler): Handler {
  return async (...args) => {
    try {
      return await handler(...args);
    } finally {
      note((args.at(-1) as Call).id);
    }
  };
}
