import { createHash } from "node:crypto";
import { readText } from "../runtime/files/files-in-time.ts";
import type { Configuration } from "./configuration.ts";
import type { OptionSpec } from "./option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "./options/groups.ts";

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
export function trustedFiles(configuration: Configuration): readonly string[] {
  const named = filesOf(configuration, ({ flag }) => TRUSTED.has(flag));
  return [...new Set([...watchedFiles(configuration), ...named])];
}

/** Returns digests of the files that are read when their options take effect, by their paths. */
export async function contentsOf(configuration: Configuration): Promise<ReadonlyMap<string, string>> {
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
