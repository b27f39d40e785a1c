import {
  type Environment,
  environmentName,
  type OptionSpec,
  type OptionTable,
  type OptionValues,
  UsageError,
} from "./option-spec.ts";

/** The texts that a source gives for an option. */
export interface Given {
  readonly texts: readonly string[];
  /** Name of the place in errors, for example `--port` or `gateway.yaml: port`. */
  readonly source: string;
  /** The texts that errors may show. Default: the texts themselves. */
  readonly shown?: readonly string[];
}

/** A source of options, such as the command line; returns undefined for an option that it does not give. */
export type Layer = (spec: OptionSpec) => Given | undefined;

/**
 * Reads the options of a table. An earlier source overrides a later one, and every source overrides the defaults.
 *
 * @throws UsageError with a single line that names the source.
 */
export function readTable<T extends OptionTable>(specs: T, layers: readonly Layer[]): OptionValues<T> {
  const entries = Object.entries(specs).map(([key, spec]) => [key, read(spec, layers)]);
  return Object.fromEntries(entries) as OptionValues<T>;
}

/** Returns the texts of the first source that gives an option. */
export function findGiven(spec: OptionSpec, layers: readonly Layer[]): Given | undefined {
  for (const layer of layers) {
    const given = layer(spec);
    if (given !== undefined) return given;
  }
  return undefined;
}

function read(spec: OptionSpec, layers: readonly Layer[]): unknown {
  const given = findGiven(spec, layers);
  if (given === undefined) {
    if (spec.repeatable) return [];
    return spec.fallback === undefined ? undefined : spec.parse(spec.fallback);
  }
  const texts = spec.commas ? given.texts.flatMap(splitAtCommas) : given.texts;
  const values = texts.map((text, index) => parseOne(spec, text, given, index));
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

/** Creates a source from environment variables; commas separate the values of repeatable options. */
export function environmentLayer(environment: Environment): Layer {
  return ({ flag, repeatable }) => {
    const source = environmentName(flag);
    const text = environment[source];
    if (text === undefined) return undefined;
    return { source, texts: repeatable ? splitAtCommas(text) : [text] };
  };
}

function splitAtCommas(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}
