import type { FastifyPluginAsync, FastifyPluginCallback } from "fastify";
import type { Logger } from "pino";
import type { NoteDecision } from "../../namespace/figures.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { Interceptor } from "../../pipeline/call/interceptor.ts";
import { isJsonObject } from "../../runtime/text.ts";

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
export function mistakeInPlugin(value: unknown): string | undefined {
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
