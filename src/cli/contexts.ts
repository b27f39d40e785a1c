import { mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { replaceOwnedFile } from "../auth/owned-file.ts";
import { withoutPlaces } from "../config/configuration.ts";
import { findGiven, type Layer, readTable, withFiles } from "../config/layers.ts";
import { type Environment, fileKey, UsageError } from "../config/option-spec.ts";
import { CLIENT_OPTIONS } from "../config/options/client.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../config/options/groups.ts";
import { parseText } from "../config/parsers.ts";
import { backendIn, readServeOptions } from "../config/serve-options.ts";
import { readText } from "../runtime/files/files-in-time.ts";
import { isJsonObject } from "../runtime/text.ts";

/** Where the key of a context is: in a file, in an environment variable, or beside the context. */
export type KeySource =
  | { readonly file: string }
  | { readonly variable: string }
  | { readonly stored: string };

/** A saved connection. */
export interface Context {
  /** Texts of options that name the data, by their keys in the configuration file. */
  readonly options: Readonly<Record<string, readonly string[]>>;
  /** Default: calls have no key. */
  readonly key?: KeySource;
  /** Whether calls send the key as a bearer token instead of `x-api-key`. Default: false. */
  readonly bearer?: boolean;
}

/** The saved connections of a user. */
export interface Contexts {
  /** Name of the context in use. Default: none. */
  readonly current?: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

/** Returns the path of the user's contexts, in the folder that the XDG Base Directory Specification names. */
export function contextsPath(environment: Environment): string {
  const { XDG_CONFIG_HOME: given = "", HOME: home = homedir() } = environment;
  // The specification has relative paths ignored.
  const folder = isAbsolute(given) ? given : join(home, ".config");
  return join(folder, "lance-gateway", "contexts.json");
}

/**
 * Reads the user's contexts; a missing file has none.
 *
 * @throws Error with a single line if the file cannot be read or has another content.
 */
export async function readContexts(path: string): Promise<Contexts> {
  let content: unknown;
  try {
    content = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return { contexts: {} };
    throw new Error(`${path} cannot be read: ${code ?? message.split("\n")[0]}`, { cause: error });
  }
  if (!isContexts(content)) throw new Error(`${path} has no saved connections; remove it to begin again`);
  return content;
}

/** Changes the user's contexts; two changes at the same time do not lose one another. */
export async function changeContexts(path: string, change: (contexts: Contexts) => Contexts): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await replaceOwnedFile(path, async () => `${JSON.stringify(change(await readContexts(path)), null, 2)}\n`);
}

function isContexts(content: unknown): content is Contexts {
  if (!isJsonObject(content) || !isJsonObject(content["contexts"])) return false;
  const { current, contexts } = content;
  return (current === undefined || typeof current === "string") && Object.values(contexts).every(isContext);
}

function isContext(value: unknown): value is Context {
  if (!isJsonObject(value) || !isJsonObject(value["options"])) return false;
  const { options, key } = value;
  const isText = (each: unknown) => typeof each === "string";
  const areTexts = Object.values(options).every((texts) => Array.isArray(texts) && texts.every(isText));
  return areTexts && (key === undefined || (isJsonObject(key) && Object.values(key).every(isText)));
}

const API_KEY_HEADER = "x-api-key";

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
    const named = layer(CLIENT_OPTIONS.context);
    const isPlaced = backendIn(layer) !== undefined;
    if (named === undefined && !isPlaced) continue;
    if (named === undefined) return withKey(readServeOptions(layers), layers);
    if (isPlaced)
      throw new UsageError(`${named.source} and an option that names the data contradict each other`);
    const name = parseText(named.texts[0] ?? "");
    return optionsOf(name, layers.slice(0, index + 1), layers.slice(index + 1), environment);
  }
  const { current } = await readContexts(contextsPath(environment));
  if (current === undefined) return withKey(readServeOptions(layers), layers);
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
  // A key of the command line, or of a variable beside the context in use, overrides the saved one.
  if (findGiven(CLIENT_OPTIONS.apiKey, before) !== undefined) return withKey(options, before);
  const key = await keyOf(context, environment);
  if (key === undefined) return options;
  const [header, value] = context.bearer
    ? (["authorization", `Bearer ${key}`] as const)
    : ([API_KEY_HEADER, key] as const);
  // A header of the command line overrides the key.
  if (options.headers.some(([each]) => each === header)) return options;
  return { ...options, headers: [...options.headers, [header, value]] };
}

/**
 * Adds the API key of `--api-key` or of its variable to the headers of the calls.
 *
 * @throws UsageError for a key on the command line that no server gets, and for a second one
 */
function withKey(options: ServeOptions, layers: readonly Layer[]): ServeOptions {
  const { apiKey } = readTable({ apiKey: CLIENT_OPTIONS.apiKey }, layers);
  if (apiKey === undefined) return options;
  const { backend, headers } = options;
  if (backend !== "rest" && backend !== "grpc") {
    // A variable is for the commands to come, some of which may be to a server.
    if (findGiven(CLIENT_OPTIONS.apiKey, layers.slice(0, 1)) === undefined) return options;
    throw new UsageError(`--api-key is for the backend rest or grpc, and the backend is ${backend}`);
  }
  if (headers.some(([name]) => name.toLowerCase() === API_KEY_HEADER))
    throw new UsageError(`--api-key and --header ${API_KEY_HEADER} contradict each other`);
  return { ...options, headers: [...headers, [API_KEY_HEADER, apiKey]] };
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
