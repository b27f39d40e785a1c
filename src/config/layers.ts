import {
  type Environment,
  environmentName,
  type OptionSpec,
  type OptionTable,
  type OptionValues,
  UsageError,
} from "./option-spec.ts";
import { refuseTwice, textsOfFiles } from "./secret-files.ts";

/** The texts that a source gives for an option. */
export interface Given {
  readonly texts: readonly string[];
  /** Name of the place in errors, for example `--port` or `gateway.yaml: port`. */
  readonly source: string;
  /** The texts that errors may show. Default: the texts themselves. */
  readonly shown?: readonly string[];
}

/** Receives a mistake of the configuration. It throws the mistake, or returns to have the next ones looked for. */
export type Report = (mistake: UsageError) => void;

/** Ends at the first mistake. */
export const refuse: Report = (mistake) => {
  throw mistake;
};

/** Reads a part of the configuration; undefined if it has a mistake and the reading goes on. */
export function attempt<T>(report: Report, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    report(error);
    return undefined;
  }
}

/** A source of options, such as the command line; returns undefined for an option that it does not give. */
export type Layer = (spec: OptionSpec) => Given | undefined;

/**
 * Reads the options of a table. An earlier source overrides a later one, and every source overrides the defaults.
 *
 * @param report Default: the first mistake ends the reading.
 * @throws UsageError with a single line that names the source.
 */
export function readTable<T extends OptionTable>(
  specs: T,
  layers: readonly Layer[],
  report: Report = refuse,
): OptionValues<T> {
  const entries = Object.entries(specs).map(([key, spec]) => [
    key,
    attempt(report, () => read(spec, layers)),
  ]);
  return Object.fromEntries(entries) as OptionValues<T>;
}

/**
 * Reads the files that sources name for values of options, so that the sources give these values, too.
 *
 * A source throws UsageError for a file that cannot be read, and for a value that is given both ways.
 *
 * @param specs options, some of which have another one for the names of such files.
 */
export async function withFiles(specs: OptionTable, layers: readonly Layer[]): Promise<readonly Layer[]> {
  const found: Layer[] = [];
  for (const layer of layers) found.push(await withFilesOf(specs, layer));
  return found;
}

async function withFilesOf(specs: OptionTable, layer: Layer): Promise<Layer> {
  const held = new Map<string, () => Given | undefined>();
  async function read(spec: OptionSpec): Promise<Given | undefined> {
    const files = layer(spec);
    return files && { source: files.source, texts: await textsOfFiles(spec, files) };
  }
  for (const spec of Object.values<OptionSpec>(specs))
    if (spec.holds !== undefined) {
      const outcome = await read(spec).then(
        (files) => () => files,
        (error: unknown) => () => {
          throw error;
        },
      );
      held.set(spec.holds, outcome);
    }
  return (spec) => {
    const given = layer(spec);
    const files = held.get(spec.flag)?.();
    if (files === undefined) return given;
    if (given === undefined) return files;
    refuseTwice(spec, given, files);
    return { source: `${given.source} and ${files.source}`, texts: [...given.texts, ...files.texts] };
  };
}

/** Returns the command line among sources: the names of its options begin with dashes. */
export function commandLine(layers: readonly Layer[]): Layer {
  return (spec) => {
    for (const layer of layers) {
      const given = layer(spec);
      if (given?.source.startsWith("--")) return given;
    }
    return undefined;
  };
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
  if (spec.named) refuseSameNames(values as readonly (readonly [name: string, ...unknown[]])[], given.source);
  return spec.repeatable ? values : values.at(-1);
}

function refuseSameNames(values: readonly (readonly [name: string, ...unknown[]])[], source: string): void {
  const names = values.map(([name]) => name);
  const same = names.find((name, index) => names.indexOf(name) !== index);
  if (same !== undefined)
    throw new UsageError(`${source} has more than one value for ${JSON.stringify(same)}`);
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

/**
 * Creates a source from environment variables; commas separate the values of repeatable options. It leaves out variables that
 * Kubernetes makes for a Service.
 */
export function environmentLayer(environment: Environment): Layer {
  return ({ flag, repeatable }) => {
    const source = environmentName(flag);
    const text = environment[source];
    if (text === undefined || isServiceLink(source, text)) return undefined;
    return { source, texts: repeatable ? splitAtCommas(text) : [text] };
  };
}

function splitAtCommas(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}

/** Address of a Service, as Kubernetes writes it into the variable `<SERVICE>_PORT` of its containers. */
const ADDRESS = /^(?:tcp|udp|sctp):\/\/\S+:\d+$/;

/**
 * Whether a variable describes a Service of Kubernetes, or a linked container of Docker, instead of an option: for a Service
 * `lance-gateway`, every container of the namespace has `LANCE_GATEWAY_PORT=tcp://10.0.0.1:80`.
 */
function isServiceLink(name: string, text: string): boolean {
  return name.endsWith("_PORT") && ADDRESS.test(text);
}

/** Returns the variables of options whose values describe a Service, and therefore have no effect. */
export function serviceLinks(options: OptionTable, environment: Environment): readonly string[] {
  return Object.values(options)
    .map(({ flag }) => environmentName(flag))
    .filter((name) => isServiceLink(name, environment[name] ?? ""));
}
