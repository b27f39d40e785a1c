import { readText } from "../runtime/files/files-in-time.ts";
import { UsageError } from "./option-spec.ts";

/**
 * Reads the file that an option names.
 *
 * @param source the option, as errors name it
 * @throws UsageError for a file that cannot be read
 */
export async function readOptionFile(source: string, path: string): Promise<string> {
  return readText(path).catch((cause: NodeJS.ErrnoException) => {
    throw new UsageError(`${source} ${path} cannot be read: ${cause.code ?? cause.message}`, { cause });
  });
}
