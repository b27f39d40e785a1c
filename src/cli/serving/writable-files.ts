import { join } from "node:path";
import type { Logger } from "pino";
import type { Configuration } from "../../config/configuration.ts";
import { trustedFiles } from "../../config/watched-files.ts";
import { namesIn, statFile } from "../../runtime/files/files-in-time.ts";

/** Bit of a mode that lets everyone write. */
const OTHERS_WRITE = 0o002n;
/** Bits of a mode that say who may do what. */
const PERMISSIONS = 0o7777n;

/**
 * Warns of the configuration file, and of files with keys, secrets, certificates or policies, that every user of the machine may write: such a
 * user decides who may call. Files that everyone may read are common in containers, and no reason to warn.
 */
export async function warnOfWritableFiles(configuration: Configuration, log: Logger): Promise<void> {
  // Modes mean nothing there.
  if (process.platform === "win32") return;
  const { policyDir } = configuration.options;
  const policies = policyDir === undefined ? [] : await namesIn(policyDir).catch(() => []);
  const inside = policies.map((name) => join(policyDir as string, name));
  for (const file of [...trustedFiles(configuration), ...inside]) {
    // The part that reads the file says why it cannot.
    const stats = await statFile(file).catch(() => undefined);
    if (stats === undefined || (stats.mode & OTHERS_WRITE) === 0n) continue;
    const mode = (stats.mode & PERMISSIONS).toString(8).padStart(4, "0");
    log.warn({ file, mode }, "every user of this machine may write a file that the gateway trusts");
  }
}
