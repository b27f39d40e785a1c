import { isRead } from "../../../namespace/actions.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";

type Operations = Pick<Backend, "operations" | "extensions">;

/**
 * Refuses every operation that writes.
 *
 * @param reason the reason why the catalog is read-only; undefined for a writable catalog, which refuses nothing
 */
export function onlyReads(reason: string | undefined, all: Operations): Operations {
  if (reason === undefined) return all;
  const refuse = async () => {
    throw new LanceError("Unsupported", `the catalog is served for reading only: ${reason}`);
  };
  const restrict = (handlers: object = {}) =>
    Object.fromEntries(
      Object.entries(handlers).map(([localName, handler]) => [
        localName,
        isRead({ localName }) ? handler : refuse,
      ]),
    );
  return { operations: restrict(all.operations), extensions: restrict(all.extensions) };
}
