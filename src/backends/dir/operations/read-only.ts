import { LanceError } from "../../../namespace/errors.ts";
import { type BackendOperations, wrapOperations } from "../../../namespace/lance-namespace.ts";
import { isReadOperation } from "../../../namespace/operations/operations.ts";

/**
 * Refuses every operation that writes.
 *
 * @param reason the reason why the catalog is read-only; undefined for a writable catalog, which refuses nothing
 */
export function onlyReads(reason: string | undefined, all: BackendOperations): BackendOperations {
  if (reason === undefined) return all;
  const refuse = async () => {
    throw new LanceError("Unsupported", `the catalog is read-only: ${reason}`);
  };
  return wrapOperations(all, (handler, localName) => (isReadOperation(localName) ? handler : refuse));
}
