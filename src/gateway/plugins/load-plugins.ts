import type { Logger } from "pino";
import { backendKindOf, UsageError } from "../../config/option-spec.ts";
import { loadDefault } from "./load-module.ts";
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
