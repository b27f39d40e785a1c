import { parseArgs } from "node:util";
import { environmentName, type OptionSpec, UsageError } from "./option-spec.ts";
import { SERVE_OPTIONS } from "./options.ts";

/** What one source says of an option. */
export interface Given {
  readonly texts: readonly string[];
  /** What to call the place in an error, for example `--port` or `gateway.yaml: port`. */
  readonly source: string;
  /** The texts as an error may show them, where they are not the texts themselves. */
  readonly shown?: readonly string[];
}

/** A source of options; undefined where it says nothing of one. */
export type Layer = (spec: OptionSpec) => Given | undefined;

/** The environment, or a part of it. */
export type Environment = Readonly<Record<string, string | undefined>>;

type OptionTable = Readonly<Record<string, OptionSpec>>;

/** The values of a table of options. */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends { repeatable: true }
    ? readonly ReturnType<T[K]["parse"]>[]
    : T[K] extends { fallback: string }
      ? ReturnType<T[K]["parse"]>
      : ReturnType<T[K]["parse"]> | undefined;
};

/** The options of a table by sources, the first of which comes first; defaults come last. */
export function settleTable<T extends OptionTable>(specs: T, layers: readonly Layer[]): OptionValues<T> {
  const entries = Object.entries(specs).map(([key, spec]) => [key, settle(spec, layers)]);
  return Object.fromEntries(entries) as OptionValues<T>;
}

/** What the first source that knows of an option says. */
export function findGiven(spec: OptionSpec, layers: readonly Layer[]): Given | undefined {
  for (const layer of layers) {
    const given = layer(spec);
    if (given !== undefined) return given;
  }
  return undefined;
}

function settle(spec: OptionSpec, layers: readonly Layer[]): unknown {
  const given = findGiven(spec, layers);
  if (given === undefined) {
    if (spec.repeatable) return [];
    return spec.fallback === undefined ? undefined : spec.parse(spec.fallback);
  }
  const values = given.texts.map((text, index) => parseOne(spec, text, given, index));
  return spec.repeatable ? values : values.at(-1);
}

function parseOne(spec: OptionSpec, text: string, { source, shown }: Given, index: number): unknown {
  try {
    return spec.parse(text);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    if (spec.secret) throw new UsageError(`${source} ${error.message}`);
    throw new UsageError(`${source} ${error.message}, not ${JSON.stringify(shown?.[index] ?? text)}`);
  }
}

/** The variables of an environment; those of options that repeat have commas between their values. */
export function environmentLayer(environment: Environment): Layer {
  return ({ flag, repeatable }) => {
    const source = environmentName(flag);
    const text = environment[source];
    if (text === undefined) return undefined;
    return { source, texts: repeatable ? text.split(",").map((part) => part.trim()) : [text] };
  };
}

/**
 * The flags of a command line.
 *
 * @throws UsageError for flags that there are not, and for whatever is no flag.
 */
export function flagLayer(args: readonly string[], specs: OptionTable = SERVE_OPTIONS): Layer {
  const options = Object.fromEntries(
    Object.values(specs).map(({ flag, value, repeatable = false }) => [
      flag,
      { type: value === undefined ? ("boolean" as const) : ("string" as const), multiple: repeatable },
    ]),
  );
  const values = parsed(args, options);
  return ({ flag }) => {
    const value = values[flag];
    if (value === undefined) return undefined;
    return { source: `--${flag}`, texts: [value].flat().map(String) };
  };
}

type FlagTypes = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

function parsed(args: readonly string[], options: FlagTypes): Readonly<Record<string, unknown>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: false }).values;
  } catch (error) {
    // The library's second sentence advises on positional arguments, of which there are none here.
    throw new UsageError(String((error as Error).message).split(". ")[0]);
  }
}
