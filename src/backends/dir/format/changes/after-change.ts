import { type ErrorName, isLanceError, LanceError } from "../../../../namespace/errors.ts";

/**
 * Does what follows a change that readers see already. A failure of it must not look as if a repeat of the change were
 * safe.
 *
 * @param kept errors that pass as they are. Default: none
 * @throws LanceError OutcomeUnknown for every other failure
 */
export async function afterChange<T>(work: () => Promise<T>, ...kept: ErrorName[]): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (["OutcomeUnknown" as const, ...kept].some((name) => isLanceError(error, name))) throw error;
    throw new LanceError(
      "OutcomeUnknown",
      "the change was made, at least in part, and then the storage failed; look before you repeat it",
      { cause: error },
    );
  }
}
