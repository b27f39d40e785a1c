import { isDeepStrictEqual } from "node:util";
import type { Configuration, Databases } from "../../config/configuration.ts";
import { fileKey, type OptionSpec } from "../../config/option-spec.ts";
import { TOKEN_OPTIONS } from "../../config/options/access/security.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options/groups.ts";

type Name = keyof ServeOptions;

/** A change of the configuration of a running gateway. */
export interface Plan {
  /** The configuration that is in effect then: the wanted one, except for options that cannot change. */
  readonly configuration: Configuration;
  /** Keys of options that change, with `databases.NAME` before those of databases. */
  readonly applied: readonly string[];
  /** Keys of options that differ and need a restart. */
  readonly pending: readonly string[];
}

/** Compares the configuration that is in effect with the one that is wanted. */
export function planChanges(running: Configuration, wanted: Configuration): Plan {
  const changed = comparing(running, wanted);
  const differing = changed(running.options, wanted.options, SERVER_NAMES);
  const pending: string[] = differing.filter((name) => !isLive(name)).map(keyOf);
  const applied = differing.filter(isLive).map(keyOf);
  const kept = Object.fromEntries(
    differing.filter((name) => !isLive(name)).map((name) => [name, running.options[name]]),
  );
  const options = { ...wanted.options, ...kept } as ServeOptions;
  const [before, after] = [running.databases, wanted.databases];
  if ((before === undefined) !== (after === undefined)) {
    pending.push("databases");
    const own = Object.fromEntries(DATABASE_OPTIONS.map((name) => [name, running.options[name]]));
    return {
      configuration: { options: { ...options, ...own }, databases: before, contents: wanted.contents },
      ...{ applied, pending },
    };
  }
  if (before === undefined || after === undefined) {
    applied.push(...changed(running.options, wanted.options, DATABASE_OPTIONS).map(keyOf));
  } else applied.push(...changesOf(before, after, changed));
  return { configuration: { options, databases: after, contents: wanted.contents }, applied, pending };
}

function changesOf(before: Databases, after: Databases, changed: typeof changedOptions): readonly string[] {
  const names = new Set([...before.byName.keys(), ...after.byName.keys()]);
  const changes = [...names].flatMap((name) => {
    const [old, own] = [before.byName.get(name), after.byName.get(name)];
    if (old === undefined || own === undefined) return [`databases.${name} (${own ? "added" : "removed"})`];
    return changed(old, own, DATABASE_OPTIONS).map((option) => `databases.${name}.${keyOf(option)}`);
  });
  const routing = ({ routes, pathPrefix }: Databases) => [routes, pathPrefix];
  return [
    ...changes,
    ...(isDeepStrictEqual(routing(before), routing(after)) ? [] : ["routes"]),
    ...(before.fallback === after.fallback ? [] : ["default-database"]),
  ];
}

/** Returns the options among the given ones whose values differ. */
export function changedOptions(
  before: ServeOptions,
  after: ServeOptions,
  names: readonly Name[],
): readonly Name[] {
  return names.filter((name) => !isDeepStrictEqual(before[name], after[name]));
}

/** Returns {@link changedOptions} of two configurations, for which options also differ whose files have other contents. */
export function comparing(
  { contents: old }: Configuration,
  { contents: now }: Configuration,
): typeof changedOptions {
  const isOtherFile = (name: Name, path: unknown) => {
    const { isFile }: OptionSpec = SERVE_OPTIONS[name];
    return isFile === true && typeof path === "string" && old?.get(path) !== now?.get(path);
  };
  return (before, after, names) =>
    names.filter((name) => !isDeepStrictEqual(before[name], after[name]) || isOtherFile(name, after[name]));
}

/** Whether a database is served by the same backend when the configuration changes. */
export function keepsBackend(before: Configuration, after: Configuration, name: string): boolean {
  const [old, own] = [optionsOf(before, name), optionsOf(after, name)];
  if (old === undefined || own === undefined) return false;
  return comparing(before, after)(old, own, BACKEND_OPTIONS).length === 0;
}

function optionsOf({ options, databases }: Configuration, name: string): ServeOptions | undefined {
  return databases === undefined ? options : databases.byName.get(name);
}

function keyOf(name: Name): string {
  return fileKey(SERVE_OPTIONS[name]);
}

/** A change that is ready to take effect. */
export interface PreparedChange {
  /** Serves by the new configuration from now on, and closes what only the former one used, once its calls have ended. */
  commit(): void;
  /** Closes what was opened. */
  abort(): Promise<void>;
}

/** Options whose changes a running gateway applies, by the parts that it opens again for them. */
export const LIVE_OPTIONS = {
  log: ["logLevel"],
  drain: ["drainDelayMs", "drainSeconds"],
  authenticator: [
    "auth",
    "apiKeysFile",
    "mtlsRoles",
    ...(Object.keys(TOKEN_OPTIONS) as (keyof typeof TOKEN_OPTIONS)[]),
  ],
  authorizer: ["auth", "policyDir", "opaUrl", "opaTokenFile", "opaCaFile", "opaTimeoutMs", "opaCacheMs"],
  rates: [
    "rateLimits",
    "rateLimitRedis",
    "rateLimitRedisPasswordFile",
    "rateLimitRedisCa",
    "rateLimitRedisPrefix",
  ],
  trail: ["auditLog", "auditRequired", "auditMaxBytes", "auditFiles"],
  access: ["accessLog"],
  events: ["webhooks", "webhookFiles", "webhookSecretFile", "webhookDir", "webhookSource"],
  limits: [
    "maxBufferedBytes",
    "maxCallerCalls",
    "maxCallerDownloads",
    "maxCallerBytes",
    "maxQueryMs",
    "maxQueryRows",
    "insecure",
    "readOnly",
    "pageTokenSecret",
    "pageTokenSecretFile",
  ],
} as const satisfies Readonly<Record<string, readonly Name[]>>;

const LIVE: ReadonlySet<string> = new Set<Name>(Object.values(LIVE_OPTIONS).flat());

/** Limits of a database that apply without opening it again. */
const LIMITS_OF_DATABASES: ReadonlySet<string> = new Set<Name>(["maxUploadBytes", "maxConcurrentCalls"]);

/** Options by which the backends of databases are opened: their own ones, and whether they write. */
const BACKEND_OPTIONS: readonly Name[] = namesOf(
  (spec, name) => name === "readOnly" || (spec.backends !== undefined && !LIMITS_OF_DATABASES.has(name)),
);

/** Options of databases, all of which are live. */
const DATABASE_OPTIONS: readonly Name[] = namesOf(({ backends }) => backends !== undefined);

/** Options of the whole server, in order. */
const SERVER_NAMES: readonly Name[] = namesOf(({ backends }) => backends === undefined);

/** Whether a running gateway applies changes of an option. */
function isLive(name: Name): boolean {
  return LIVE.has(name) || DATABASE_OPTIONS.includes(name);
}

function namesOf(chosen: (spec: OptionSpec, name: string) => boolean): readonly Name[] {
  return (Object.keys(SERVE_OPTIONS) as Name[]).filter((name) => chosen(SERVE_OPTIONS[name], name));
}
