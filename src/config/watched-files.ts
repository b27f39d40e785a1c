import type { Configuration } from "./configuration.ts";
import type { OptionSpec } from "./option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "./options.ts";

/** Returns the configuration file, and the files that hold values. */
export function watchedFiles({ options, databases }: Configuration): readonly string[] {
  const specs: Readonly<Record<string, OptionSpec>> = SERVE_OPTIONS;
  const naming = Object.keys(specs).filter(
    (name) => specs[name]?.holds !== undefined,
  ) as (keyof ServeOptions)[];
  const files = [options, ...(databases?.byName.values() ?? [])].flatMap((own) =>
    naming.flatMap((name) => {
      const named = [own[name] ?? []].flat() as readonly (string | readonly [string, string])[];
      return named.map((each) => (typeof each === "string" ? each : each[1]));
    }),
  );
  return [...new Set([...(options.config === undefined ? [] : [options.config]), ...files])];
}
