import type { OptionSpec } from "../../config/option-spec.ts";
import { TOKEN_OPTIONS } from "../../config/options/access/tokens.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options/groups.ts";

type Name = keyof ServeOptions;

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

/** Options of databases by which their backends are opened. */
export const BACKEND_OPTIONS: readonly Name[] = namesOf(
  (spec, name) => spec.backends !== undefined && !LIMITS_OF_DATABASES.has(name),
);

/** Options of databases, all of which are live. */
export const DATABASE_OPTIONS: readonly Name[] = namesOf(({ backends }) => backends !== undefined);

/** Options of the whole server, in order. */
export const SERVER_NAMES: readonly Name[] = namesOf(({ backends }) => backends === undefined);

/** Whether a running gateway applies changes of an option. */
export function isLive(name: Name): boolean {
  return LIVE.has(name) || DATABASE_OPTIONS.includes(name);
}

function namesOf(chosen: (spec: OptionSpec, name: string) => boolean): readonly Name[] {
  return (Object.keys(SERVE_OPTIONS) as Name[]).filter((name) => chosen(SERVE_OPTIONS[name], name));
}
