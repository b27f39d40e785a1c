import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Logger } from "pino";
import { type Configuration, configurationOf, readSources } from "../../config/configuration.ts";
import { explain, type ShownConfiguration } from "../../config/explain.ts";
import type { Layer } from "../../config/layers.ts";
import type { Environment, OptionSpec } from "../../config/option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options/groups.ts";
import { redactText } from "../../observability/log/redact.ts";
import { namesIn, readText, statFile } from "../../runtime/files/files-in-time.ts";

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

/** Returns the configuration file, the files that hold values, and those that are read when their options take effect. */
export function watchedFiles(configuration: Configuration): readonly string[] {
  const { config } = configuration.options;
  const named = filesOf(configuration, ({ holds, isFile }) => holds !== undefined || isFile === true);
  return [...new Set([...(config === undefined ? [] : [config]), ...named])];
}

/** Flags of other files, and of the directory of policies, by which the gateway knows whom to trust. */
const TRUSTED: ReadonlySet<string> = new Set([
  "api-keys-file",
  "tls-cert",
  "tls-key",
  "tls-client-ca",
  "policy-dir",
]);

/** Returns the files, and the directory of policies, whose writers decide who may call and what callers may do. */
function trustedFiles(configuration: Configuration): readonly string[] {
  const named = filesOf(configuration, ({ flag }) => TRUSTED.has(flag));
  return [...new Set([...watchedFiles(configuration), ...named])];
}

/** Returns digests of the files that are read when their options take effect, by their paths. */
async function contentsOf(configuration: Configuration): Promise<ReadonlyMap<string, string>> {
  const contents = new Map<string, string>();
  for (const path of filesOf(configuration, ({ isFile }) => isFile === true))
    contents.set(path, await digestOf(path));
  return contents;
}

/** Returns the files that some options name. */
function filesOf(
  { options, databases }: Configuration,
  chosen: (spec: OptionSpec) => boolean,
): readonly string[] {
  const specs: Readonly<Record<string, OptionSpec>> = SERVE_OPTIONS;
  const naming = Object.keys(specs).filter((name) =>
    chosen(specs[name] as OptionSpec),
  ) as (keyof ServeOptions)[];
  return [options, ...(databases?.byName.values() ?? [])].flatMap((own) =>
    naming.flatMap((name) => {
      const named = [own[name] ?? []].flat() as readonly (string | readonly [string, string])[];
      return named.map((each) => (typeof each === "string" ? each : each[1]));
    }),
  );
}

/** A file that cannot be read differs from its former self; the part that opens it says why. */
async function digestOf(path: string): Promise<string> {
  const text = await readText(path).catch(String);
  return createHash("sha256").update(text).digest("base64");
}
