import { withoutPlaces } from "../../config/configuration.ts";
import { type Layer, withFiles } from "../../config/layers.ts";
import { type Environment, fileKey, type OptionSpec, UsageError } from "../../config/option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options.ts";
import { parseText } from "../../config/parsers.ts";
import { backendIn, readServeOptions } from "../../config/serve-options.ts";
import { readText } from "../../runtime/files-in-time.ts";
import { type Context, contextsPath, readContexts } from "./context-file.ts";

/** The saved connection that a command uses. */
export const CONTEXT_OPTION = {
  flag: "context",
  value: "CONTEXT",
  help: "Saved connection (lance-gateway context). Default: the one in use, unless another option names the data.",
  parse: parseText,
} as const satisfies OptionSpec;

/**
 * Reads which catalog a command works on. Options that name the data override the saved connection in use as a whole, so that its
 * key never reaches another server.
 *
 * @throws UsageError with a single line.
 */
export async function readConnection(
  given: readonly Layer[],
  environment: Environment,
): Promise<ServeOptions> {
  const layers = await withFiles(SERVE_OPTIONS, given);
  for (const [index, layer] of layers.entries()) {
    const named = layer(CONTEXT_OPTION);
    const isPlaced = backendIn(layer) !== undefined;
    if (named === undefined && !isPlaced) continue;
    if (named === undefined) return readServeOptions(layers);
    if (isPlaced)
      throw new UsageError(`${named.source} and an option that names the data contradict each other`);
    const name = parseText(named.texts[0] ?? "");
    return optionsOf(name, layers.slice(0, index + 1), layers.slice(index + 1), environment);
  }
  const { current } = await readContexts(contextsPath(environment));
  if (current === undefined) return readServeOptions(layers);
  return optionsOf(current, layers, [], environment);
}

async function optionsOf(
  name: string,
  before: readonly Layer[],
  after: readonly Layer[],
  environment: Environment,
): Promise<ServeOptions> {
  const path = contextsPath(environment);
  const { contexts } = await readContexts(path);
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (context === undefined) {
    const names = Object.keys(contexts).sort().join(", ");
    throw new UsageError(
      `there is no context ${name}; ${names === "" ? "lance-gateway context add saves one" : `there are ${names}`}`,
    );
  }
  const own = layerOf(context, `context ${name}: `);
  const options = readServeOptions([...before, own, ...after.map(withoutPlaces)]);
  const key = await keyOf(context, environment);
  if (key === undefined) return options;
  const [header, value] = context.bearer
    ? (["authorization", `Bearer ${key}`] as const)
    : (["x-api-key", key] as const);
  // A header of the command line overrides the key.
  if (options.headers.some(([each]) => each === header)) return options;
  return { ...options, headers: [...options.headers, [header, value]] };
}

/** Returns a context as a source of options. */
export function layerOf({ options }: Context, at: string): Layer {
  return (spec) => {
    const key = fileKey(spec);
    const texts = spec.place && Object.hasOwn(options, key) ? options[key] : undefined;
    return texts && { source: `${at}${key}`, texts };
  };
}

async function keyOf({ key }: Context, environment: Environment): Promise<string | undefined> {
  if (key === undefined) return undefined;
  if ("stored" in key) return key.stored;
  if ("variable" in key) {
    const value = environment[key.variable];
    if (value) return value;
    throw new UsageError(`the key of the context is in ${key.variable}, which is not set`);
  }
  const text = await readText(key.file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`the key file ${key.file} cannot be read: ${error.code ?? error.message}`);
  });
  if (text.trim() === "") throw new UsageError(`the key file ${key.file} is empty`);
  return text.trim();
}
