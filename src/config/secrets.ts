import { SECRET_NAME } from "../runtime/text.ts";
import type { Configuration } from "./configuration.ts";
import type { Environment, OptionSpec } from "./option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "./options/groups.ts";

/** Returns the secrets among the options and the environment of a server. */
export function secretsOf({ options, databases }: Configuration, environment: Environment): string[] {
  const all = [options, ...(databases?.byName.values() ?? [])].flatMap(secretsOfOptions);
  const fromEnvironment = Object.entries(environment).flatMap(([name, value]) =>
    value !== undefined && SECRET_NAME.test(name) ? [value] : [],
  );
  return [...new Set([...all, ...fromEnvironment])];
}

/** Adds the secrets of a changed configuration to those that a log masks, each once: every line of the log looks for all of them. */
export function addSecrets(known: string[], configuration: Configuration, environment: Environment): void {
  const all = new Set(known);
  known.push(...secretsOf(configuration, environment).filter((secret) => !all.has(secret)));
}

/** Returns the secrets among the options of a storage or of a backend. */
export function storageSecrets(options: ServeOptions["storageOptions" | "backendOptions"]): string[] {
  return options.flatMap(([key, value]) => (SECRET_NAME.test(key) ? [value] : []));
}

function secretsOfOptions(options: ServeOptions): string[] {
  const { storageOptions, backendOptions, headers, ...others } = options;
  const specs: Readonly<Record<string, OptionSpec>> = SERVE_OPTIONS;
  const values = Object.entries(others).flatMap(([name, value]) =>
    specs[name]?.secret === true && typeof value === "string" ? [value] : [],
  );
  return [
    ...values,
    ...storageSecrets([...storageOptions, ...backendOptions]),
    ...headers.flatMap(([, value]) => [value, ...value.split(" ")]),
  ];
}
