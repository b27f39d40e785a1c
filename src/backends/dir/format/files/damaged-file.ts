import { LanceError } from "../../../../namespace/errors.ts";

/** Creates the error for a file that cannot be read. Its message names the file, and not the directory. */
export function damagedFile(key: string, fault: string, cause?: unknown): LanceError {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return new LanceError("DataLoss", `${name} ${fault}`, { cause });
}
