import type { Logger } from "pino";
import { readText } from "../runtime/files/files-in-time.ts";
import { openFollowed, stampOfFiles } from "../runtime/files/follow.ts";
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
 * @param intervalMs interval between looks. Default: that of {@link openFollowed}.
 * @throws Error with a single line.
 */
export async function openSecretFile(path: string, log: Logger, intervalMs?: number): Promise<SecretFile> {
  let secrets: readonly Buffer[];
  const { first, close } = await openFollowed({
    stamp: () => stampOfFiles([path]),
    read: async () => parseSecrets(await readText(path)),
    take(changed) {
      secrets = changed;
      log.info({ path, secrets: secrets.length }, "the secrets of webhooks were read again");
    },
    failed: (error) => log.error({ path, err: error }, "the secrets of webhooks stay as they were"),
    intervalMs,
  });
  secrets = first;
  return { secrets: () => secrets, close };
}
