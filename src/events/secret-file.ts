import { readFile } from "node:fs/promises";
import type { Logger } from "pino";
import { watchFiles } from "../namespace/watch-files.ts";
import { parseSecrets } from "./signature.ts";

/** The secrets of a file, as they are now. */
export interface SecretFile {
  secrets(): readonly Buffer[];
  close(): void;
}

/**
 * Opens a file of secrets. It is read again when it changes; if the new content is wrong, the secrets stay as they were, and the log
 * says why.
 *
 * @param intervalMs interval between looks. Default: that of {@link watchFiles}.
 * @throws Error with a single line.
 */
export async function openSecretFile(path: string, log: Logger, intervalMs?: number): Promise<SecretFile> {
  const read = async () => parseSecrets(await readFile(path, "utf8"));
  let secrets = await read();
  const close = watchFiles(
    [path],
    async () => {
      try {
        secrets = await read();
        log.info({ path, secrets: secrets.length }, "the secrets of webhooks were read again");
      } catch (error) {
        log.error({ path, err: error }, "the secrets of webhooks stay as they were");
      }
    },
    intervalMs,
  );
  return { secrets: () => secrets, close };
}
