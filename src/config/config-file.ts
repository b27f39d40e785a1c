import { readText } from "../runtime/files/files-in-time.ts";
import { isJsonObject } from "../runtime/text.ts";
import { type Report, refuse } from "./layers.ts";
import { type Environment, UsageError } from "./option-spec.ts";

/** A map of the configuration file, and its name in errors. */
export interface Section {
  readonly entries: Readonly<Record<string, unknown>>;
  /** File and path of the map, to be followed by a key, as in `gateway.yaml: databases.sales.`. */
  readonly at: string;
}

/**
 * Reads a configuration file in YAML 1.2, of which JSON is a subset.
 *
 * @param report Default: the first mistake ends the reading.
 * @throws UsageError with a single line, if the file cannot be read or does not contain a map.
 */
export async function readConfigFile(file: string, report: Report = refuse): Promise<Section> {
  const text = await readText(file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} cannot be read: ${error.code ?? error.message}`);
  });
  // Only users of such a file wait for the library to load.
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, { prettyErrors: true, stringKeys: true });
  for (const { message } of document.errors) report(new UsageError(`${file}: ${firstLine(message)}`));
  if (document.errors.length > 0) return { entries: {}, at: `${file}: ` };
  const content: unknown = document.toJS();
  if (content === null || content === undefined) return { entries: {}, at: `${file}: ` };
  if (!isJsonObject(content)) throw new UsageError(`${file} must have keys and values at its top`);
  return { entries: content, at: `${file}: ` };
}

/** Returns the map at a key; undefined if the key is missing. */
export function subsection({ entries, at }: Section, key: string): Section | undefined {
  const value = entries[key];
  if (value === undefined || value === null) return undefined;
  if (!isJsonObject(value)) throw new UsageError(`${at}${key} must be a map of keys and values`);
  return { entries: value, at: `${at}${key}.` };
}

/** Returns the maps of the list at a key; an empty list if the key is missing. */
export function listedSections({ entries, at }: Section, key: string): readonly Section[] {
  const value = entries[key];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new UsageError(`${at}${key} must be a list`);
  return value.map((each: unknown, index) => {
    if (!isJsonObject(each)) throw new UsageError(`${at}${key}[${index}] must be a map of keys and values`);
    return { entries: each, at: `${at}${key}[${index}].` };
  });
}

/** Returns the text at a key; undefined if the key is missing. */
export function textAt({ entries, at }: Section, key: string): string | undefined {
  const value = entries[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || value === "") throw new UsageError(`${at}${key} must be a text`);
  return value;
}

/** Number of keys that an error lists if none of them is near to the unknown one. */
const MAX_LISTED = 20;

/** Refuses unknown keys, and names the known key that is nearest to each of them. */
export function checkKeys(
  { entries, at }: Section,
  allowed: readonly string[],
  report: Report = refuse,
): void {
  for (const key in entries) {
    if (allowed.includes(key)) continue;
    const known = nearest(key, allowed);
    const all = allowed.length > MAX_LISTED ? "" : `; there are ${[...allowed].sort().join(", ")}`;
    report(new UsageError(`${at}${key} is unknown${known === undefined ? all : `; did you mean ${known}?`}`));
  }
}

const VARIABLE = /\$\$\{|\$\{([^}]*)(\}?)/g;

/**
 * Replaces each `${NAME}` in a text by the value of the environment variable; `$${` yields `${`.
 *
 * @throws UsageError if a variable is not set, or its name does not end.
 */
export function expandVariables(text: string, environment: Environment, at: string): string {
  return text.replaceAll(VARIABLE, (found, name: string | undefined, close: string | undefined) => {
    if (found === "$${") return "${";
    if (close === "") throw new UsageError(`${at} has a \${ without a }; $\${ is a literal \${`);
    const value = environment[name ?? ""];
    if (value !== undefined) return value;
    throw new UsageError(`${at} needs the environment variable ${JSON.stringify(name)}, which is not set`);
  });
}

function firstLine(message: string): string {
  return (message.split("\n", 1)[0] ?? "").replace(/:$/, "");
}

/** Returns the word that differs least from another one; undefined if all differ much. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length / 3));
  const [best] = known
    .map((each) => ({ each, distance: distanceOf(word, each) }))
    .sort((one, other) => one.distance - other.distance);
  return best === undefined || best.distance > most ? undefined : best.each;
}

/** Returns how many letters must be put in, left out, replaced or swapped with the next one (optimal string alignment). */
function distanceOf(one: string, other: string): number {
  let [beforeLast, last]: [number[], number[]] = [
    [],
    Array.from({ length: other.length + 1 }, (_, at) => at),
  ];
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[column - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[other.length] as number;
}
