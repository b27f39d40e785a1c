import { LanceError } from "../../../../namespace/errors.ts";

/** Creates the error for a file that cannot be read. Its message names the file, and not the directory. */
export function damagedFile(key: string, fault: string, cause?: unknown): LanceError {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return new LanceError("DataLoss", `${name} ${fault}`, { cause });
}

/**
 * Returns the JSON object in a file.
 *
 * @param key names the file in an error
 * @throws LanceError DataLoss
 */
export function parseJsonFile(key: string, bytes: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const content: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    if (typeof content === "object" && content !== null) return content as Record<string, unknown>;
  } catch (error) {
    throw damagedFile(key, "is no JSON", error);
  }
  throw damagedFile(key, "is no JSON object");
}
