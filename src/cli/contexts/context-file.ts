import { mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { replaceOwnedFile } from "../../auth/owned-file.ts";
import type { Environment } from "../../config/option-spec.ts";
import { isJsonObject } from "../../runtime/text.ts";

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
