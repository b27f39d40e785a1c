import { join } from "node:path";
import type { Logger } from "pino";
import { type Configuration, configurationOf, readSources } from "../../config/configuration.ts";
import { explain, type ShownConfiguration } from "../../config/explain.ts";
import type { Layer } from "../../config/layers.ts";
import type { Environment } from "../../config/option-spec.ts";
import { contentsOf, trustedFiles } from "../../config/watched-files.ts";
import { redactText } from "../../observability/log/redact.ts";
import { namesIn, statFile } from "../../runtime/files/files-in-time.ts";

/** A configuration as it was read, and as operators may see it. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  readonly shown: ShownConfiguration;
}

/** Reads the configuration of `serve`. */
export async function loadConfiguration(
  layers: readonly Layer[],
  environment: Environment,
): Promise<LoadedConfiguration> {
  const sources = await readSources(layers, environment);
  const configuration = configurationOf(sources);
  const contents = await contentsOf(configuration);
  return { configuration: { ...configuration, contents }, shown: explain(sources, redactText) };
}

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
