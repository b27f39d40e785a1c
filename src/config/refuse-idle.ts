import { nearest } from "./config-file.ts";
import { findGiven, type Given, type Layer } from "./layers.ts";
import {
  type BackendKind,
  type Environment,
  environmentName,
  type Need,
  type OptionSpec,
  type OptionTable,
  UsageError,
} from "./option-spec.ts";
import { CLIENT_OPTIONS } from "./options/client.ts";
import { SERVE_OPTIONS } from "./options/groups.ts";

/**
 * Refuses options of the command line that have no effect, because the option is missing or has another value that they need: they would
 * do nothing, and a user would believe otherwise. Variables and files are for several commands and may say more than one of them uses.
 *
 * @param options all options of the command
 * @param flags the command line
 * @param layers all sources, the most important first
 * @param kind kind of the backend. Default: the options are not for some kinds of backends alone
 * @throws UsageError that names both options
 */
export function refuseIdle(
  options: OptionTable,
  flags: Layer,
  layers: readonly Layer[],
  kind?: BackendKind,
): void {
  const specs = Object.values<OptionSpec>(options);
  for (const spec of specs) {
    const given = flags(spec);
    if (given === undefined || isOff(spec, given)) continue;
    for (const need of [spec.needs ?? []].flat()) {
      if (kind !== undefined && need.with?.includes(kind) === false) continue;
      const other = specs.find(({ flag }) => flag === need.flag);
      if (other === undefined || isMet(need, textsOf(other, layers))) continue;
      throw new UsageError(`${given.source} has no effect ${reasonOf(need)}`);
    }
  }
}

/** An option that is turned off wants no effect. */
function isOff({ value, parse }: OptionSpec, { texts }: Given): boolean {
  return texts.at(-1) === (value === undefined ? "false" : parse.choices?.includes("off") && "off");
}

function textsOf(spec: OptionSpec, layers: readonly Layer[]): readonly string[] {
  const texts = findGiven(spec, layers)?.texts ?? (spec.fallback === undefined ? [] : [spec.fallback]);
  return texts.flatMap((text) => (spec.commas ? text.split(",").map((part) => part.trim()) : [text]));
}

function isMet({ is, isNot = ["false"], absent }: Need, texts: readonly string[]): boolean {
  if (absent) return texts.length === 0;
  if (is !== undefined) return texts.some((text) => is.includes(text));
  return texts.some((text) => !isNot.includes(text));
}

function reasonOf({ flag, is, isNot, absent }: Need): string {
  if (absent) return `with --${flag}`;
  if (isNot !== undefined) return `with --${flag} ${isNot.join(" or ")}`;
  return is === undefined ? `without --${flag}` : `without --${flag} ${is.join(" or ")}`;
}

/** Returns a line for each variable that looks like that of an option and is none; those of Kubernetes' services do not. */
export function unknownVariables(environment: Environment): readonly string[] {
  const known = Object.values({ ...SERVE_OPTIONS, ...CLIENT_OPTIONS }).map(({ flag }) =>
    environmentName(flag),
  );
  const prefix = environmentName("");
  return Object.keys(environment).flatMap((name) => {
    if (!name.startsWith(prefix) || known.includes(name)) return [];
    const meant = nearest(
      name.slice(prefix.length),
      known.map((each) => each.slice(prefix.length)),
    );
    return meant === undefined
      ? []
      : [`${name} is unknown and has no effect; did you mean ${prefix}${meant}?`];
  });
}
