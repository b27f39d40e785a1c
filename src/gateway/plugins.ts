import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { FastifyPluginAsync, FastifyPluginCallback } from "fastify";
import type { Logger } from "pino";
import { backendKindOf, UsageError } from "../config/option-spec.ts";
import type { NoteDecision } from "../namespace/figures.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import type { Interceptor } from "../pipeline/call/interceptor.ts";
import { isJsonObject } from "../runtime/text.ts";

/** Extensions of a gateway. */
export interface GatewayPlugin {
  /** Interceptors that every call passes, in order. Default: none. */
  readonly interceptors?: readonly Interceptor[];
  /** Fastify plugin with its own hooks and routes, on the gateway's port. Default: none. */
  readonly fastify?: FastifyPluginCallback | FastifyPluginAsync;
  /** Backends by the names that `--backend` accepts. Default: none. */
  readonly backends?: Readonly<Record<string, BackendFactory>>;
}

/** Context of a plugin. */
export interface PluginContext {
  readonly log: Logger;
}

/** Default export of a plugin: the plugin, or a function that returns it. */
export type PluginExport =
  | GatewayPlugin
  | ((context: PluginContext) => GatewayPlugin | Promise<GatewayPlugin>);

/** Context of a backend. */
export interface BackendContext {
  /** Values of `--backend-option`, by name. */
  readonly options: Readonly<Record<string, string>>;
  readonly log: Logger;
  /** Counts decisions about an upstream that do not belong to a call. */
  readonly noteDecision: NoteDecision;
}

/** Opens a backend; its failure stops the start of the gateway with its message. */
export type BackendFactory = (context: BackendContext) => Backend | Promise<Backend>;

/** Checks of a plugin's members, each with the requirement for an error. */
const MEMBERS: Readonly<Record<string, readonly [check: (value: unknown) => boolean, must: string]>> = {
  interceptors: [
    (value) => Array.isArray(value) && value.every((each) => typeof each === "function"),
    "a list of functions",
  ],
  fastify: [(value) => typeof value === "function", "a function"],
  backends: [
    (value) => isJsonObject(value) && Object.values(value).every((each) => typeof each === "function"),
    "functions by name",
  ],
};

/**
 * Describes for people why a value is not a valid plugin; returns undefined for a plugin. An object without any member
 * is invalid, because a module that exports something else would otherwise go unnoticed.
 */
function mistakeInPlugin(value: unknown): string | undefined {
  const members = Object.keys(MEMBERS).join(", ");
  const given = isJsonObject(value) ? Object.entries(value) : [];
  if (given.length === 0) {
    return `must export a plugin as its default: an object with ${members}, or a function that returns one`;
  }
  for (const [name, member] of given) {
    const found = MEMBERS[name];
    if (found === undefined) return `exports a plugin with the unknown member ${name}; there are ${members}`;
    const [check, must] = found;
    if (!check(member)) return `exports a plugin whose ${name} must be ${must}`;
  }
  return undefined;
}

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
