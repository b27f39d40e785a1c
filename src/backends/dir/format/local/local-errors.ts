import { type ErrorName, LanceError } from "../../../../namespace/errors.ts";

/** Known failures of a disk, by the system's error code. */
const MEANINGS: Readonly<Record<string, readonly [name: ErrorName, message: string]>> = {
  EACCES: ["ServiceUnavailable", "the storage of the catalog denies access to the server"],
  EPERM: ["ServiceUnavailable", "the storage of the catalog denies access to the server"],
  EROFS: ["Unsupported", "the storage of the catalog is read-only"],
  ENOSPC: ["ServiceUnavailable", "the storage of the catalog is full"],
  EDQUOT: ["ServiceUnavailable", "the storage of the catalog is full"],
  EIO: ["ServiceUnavailable", "catalog storage is failing"],
  ESTALE: ["ServiceUnavailable", "catalog storage is failing"],
  EMFILE: ["ServiceUnavailable", "the server has too many open files"],
  ENFILE: ["ServiceUnavailable", "the server has too many open files"],
  ENAMETOOLONG: ["InvalidInput", "a name is longer than the storage of the catalog allows"],
};

/**
 * A sync of names failed after they had changed: readers see the change, and a loss of power may undo it. Reading
 * cannot show what is on the disk, so the writer must treat the change neither as done nor as undone.
 */
export class UnsyncedError extends LanceError {
  constructor(cause: unknown) {
    super(
      "OutcomeUnknown",
      "the storage of the catalog failed to sync a change, which may be stored or not; look before you repeat it",
      { cause },
    );
  }
}

/** Converts a failure of a disk to a {@link LanceError} if it is known; returns any other failure unchanged. */
export function toDiskError(thrown: unknown): unknown {
  const meaning = MEANINGS[(thrown as NodeJS.ErrnoException)?.code ?? ""];
  return meaning === undefined ? thrown : new LanceError(...meaning, { cause: thrown });
}

/** Whether a failure has an error code of the system. */
export function hasCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}

/** Whether a failure means that a path does not exist. */
export function isMissing(error: unknown): boolean {
  return hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR");
}

/** Returns a handler that answers a missing path with a value, and throws every other failure. */
export function ifMissing<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isMissing(error)) return value;
    throw error;
  };
}
