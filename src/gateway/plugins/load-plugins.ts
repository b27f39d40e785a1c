import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Logger } from "pino";
import { backendKindOf, UsageError } from "../../config/option-spec.ts";
import { type BackendFactory, type GatewayPlugin, mistakeInPlugin } from "./plugin.ts";

/**
 * Loads the plugins that `--plugin` names, in order.
 *
 * @throws UsageError with a single line, if a module is missing or fails, or its export is not a plugin.
 */
export async function loadPlugins(
  modules: readonly string[],
  log: Logger,
): Promise<readonly GatewayPlugin[]> {
  const plugins: GatewayPlugin[] = [];
  for (const name of modules) plugins.push(await loadPlugin(name, log));
  checkBackends(plugins);
  return plugins;
}

async function loadPlugin(name: string, log: Logger): Promise<GatewayPlugin> {
  const exported = await loadDefault(name, "--plugin");
  const plugin = typeof exported === "function" ? await made(exported, name, log) : exported;
  const mistake = mistakeInPlugin(plugin);
  if (mistake !== undefined) throw new UsageError(`--plugin ${name} ${mistake}`);
  return plugin as GatewayPlugin;
}

async function made(make: unknown, name: string, log: Logger): Promise<unknown> {
  try {
    return await (make as (context: { log: Logger }) => unknown)({ log });
  } catch (cause) {
    throw new UsageError(`--plugin ${name} fails: ${(cause as Error).message}`, { cause });
  }
}

/** Returns the backends of plugins, by name. */
export function backendsOf(plugins: readonly GatewayPlugin[]): ReadonlyMap<string, BackendFactory> {
  return new Map(plugins.flatMap(({ backends = {} }) => Object.entries(backends)));
}

function checkBackends(plugins: readonly GatewayPlugin[]): void {
  const names = plugins.flatMap(({ backends = {} }) => Object.keys(backends));
  const taken = names.find((name, at) => backendKindOf(name) !== "other" || names.indexOf(name) !== at);
  if (taken !== undefined) throw new UsageError(`two backends have the name ${taken}`);
}

/** Beginning of a path; anything else is the name of a package. */
const PATH = /^(?:\.{0,2}\/|[A-Za-z]:\\|\.{1,2}\\)/;

/**
 * Loads the default export of a file or a package. It looks for a package from the working directory first, and then
 * from the gateway's own directory.
 *
 * @param source the option that names the module, for errors.
 * @param instead the end of the error for a missing module.
 * @throws UsageError with a single line, if the module is missing, fails, or has no default export.
 */
export async function loadDefault(specifier: string, source: string, instead = ""): Promise<unknown> {
  const address = addressOf(specifier);
  let loaded: { readonly default?: unknown };
  try {
    loaded = await import(address);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const missing = code === "ERR_MODULE_NOT_FOUND" && names(message, specifier, address);
    if (missing) throw new UsageError(`${source} ${specifier} cannot be found${instead}`);
    const [line = ""] = String(message).split("\n", 1);
    throw new UsageError(`${source} ${specifier} cannot be loaded: ${line}`, { cause: error });
  }
  if (loaded.default !== undefined) return loaded.default;
  throw new UsageError(`${source} ${specifier} has no default export`);
}

/** Whether a message about a missing module refers to this module, and not to a module that it imports. */
function names(message: string, specifier: string, address: string): boolean {
  const path = URL.canParse(address) ? new URL(address).pathname : address;
  const [missing = ""] = message.split(" imported from ", 1);
  return missing.includes(`'${specifier}'`) || missing.includes(decodeURIComponent(path));
}

function addressOf(specifier: string): string {
  if (specifier.startsWith("file:")) return specifier;
  if (PATH.test(specifier)) return pathToFileURL(resolve(specifier)).href;
  try {
    return pathToFileURL(createRequire(join(process.cwd(), "_")).resolve(specifier)).href;
  } catch {
    return specifier;
  }
}
