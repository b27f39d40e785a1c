import type { Logger } from "pino";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { Configuration } from "../../config/configuration.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { Authorizer } from "../../namespace/authorizer.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { Metrics } from "../../observability/metrics/metrics.ts";
import type { Database } from "../../pipeline/call/databases.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import { openAuthenticator, openAuthorizer } from "../access/open-access.ts";
import { openBackend, type Surroundings } from "../backends/open-backend.ts";
import { type AccessLog, type AuditLog, openAccess, openAudit } from "../open-logs.ts";
import { openSharedRates, type SharedRates } from "../shared-rates.ts";
import type { Workers } from "../workers.ts";
import { comparing, keepsBackend, LIVE_OPTIONS } from "./plan-changes.ts";

/** Parts of a gateway that last as long as their options stay the same. */
export interface Parts {
  readonly authenticator: Authenticator | undefined;
  readonly authorizer: Authorizer | undefined;
  readonly rates: SharedRates | undefined;
  /** The audit log. */
  readonly trail: AuditLog | undefined;
  readonly access: AccessLog | undefined;
}

/** Everything that answers calls by one configuration. */
export interface Generation extends Parts {
  readonly configuration: Configuration;
  /** Databases by name; the empty text is an only database. */
  readonly databases: ReadonlyMap<string, Database>;
}

/** Resources of the process that all generations use. */
export interface GenerationContext {
  readonly log: Logger;
  readonly metrics: Metrics | undefined;
  readonly workers: Workers | undefined;
  readonly surroundings: Surroundings;
  /** Counts failed authentications in shared memory. Default: in this thread. */
  readonly failures: (options: ServeOptions) => KeyedCells | undefined;
}

type Opener<K extends keyof Parts> = (options: ServeOptions, context: GenerationContext) => Promise<Parts[K]>;

/** How each part is opened; its options are in {@link LIVE_OPTIONS}. */
const OPENERS: { readonly [K in keyof Parts]: Opener<K> } = {
  authenticator: (options, { log, failures }) => openAuthenticator(options, log, failures(options)),
  authorizer: (options, { log, metrics }) => openAuthorizer(options, log, metrics?.decidePolicy),
  rates: (options, { log, metrics }) => openSharedRates(options, log, () => metrics?.failSharedRate()),
  trail: (options, { log, metrics }) =>
    openAudit(options, log, (lines) => metrics?.loseLines("audit", lines)),
  access: ({ accessLog }, { log, metrics }) =>
    openAccess(accessLog, log, (lines) => metrics?.loseLines("access", lines)),
};

const NAMES = Object.keys(OPENERS) as (keyof Parts)[];

/**
 * Opens what answers calls by a configuration. It takes from the former generation whatever has the same options.
 *
 * @throws UsageError for mistakes, and Error if a backend cannot be opened; it then closes what it has opened.
 */
export async function openGeneration(
  configuration: Configuration,
  context: GenerationContext,
  former?: Generation,
): Promise<Generation> {
  const { options, databases: named } = configuration;
  const parts: Partial<Record<keyof Parts, unknown>> = {};
  const databases = new Map<string, Database>();
  const unfinished = () => ({ ...parts, configuration, databases }) as unknown as Generation;
  try {
    for (const name of NAMES) {
      const isSame =
        former !== undefined &&
        comparing(former.configuration, configuration)(
          former.configuration.options,
          options,
          LIVE_OPTIONS[name],
        ).length === 0;
      parts[name] = isSame ? former[name] : await OPENERS[name](options, context);
    }
    for (const [name, own] of named?.byName ?? [["", options] as const]) {
      databases.set(name, await openDatabase(name, own, configuration, context, former));
    }
    return unfinished();
  } catch (error) {
    await closeGeneration(unfinished(), ...(former === undefined ? [] : [former]));
    throw error;
  }
}

async function openDatabase(
  name: string,
  options: ServeOptions,
  configuration: Configuration,
  { metrics, workers, surroundings }: GenerationContext,
  former: Generation | undefined,
): Promise<Database> {
  const known = former?.databases.get(name);
  if (
    former !== undefined &&
    known !== undefined &&
    keepsBackend(former.configuration, configuration, name)
  ) {
    return { ...known, limits: options };
  }
  const [only, shared] = [name === "" ? undefined : name, workers?.database(name)];
  const own = {
    noteDecision: metrics?.noteFor(only),
    upkeepMetrics: metrics?.upkeepFor(only),
    clusterMetrics: metrics?.clusterFor(only),
    shared,
  };
  const backend = await openBackend(options, { ...surroundings, ...own }).catch((cause) => {
    if (only === undefined) throw cause;
    const Mistake = cause instanceof UsageError ? UsageError : Error;
    throw new Mistake(`database ${name}: ${(cause as Error).message}`, { cause });
  });
  return { backend, limits: options, calls: shared?.calls };
}

/** Closes what a generation has, except for what others use, too. */
export async function closeGeneration(
  generation: Generation,
  ...others: readonly Generation[]
): Promise<void> {
  const parts = NAMES.filter((name) => others.every((other) => other[name] !== generation[name]));
  const used = new Set(others.flatMap(backendsOf));
  const closing = backendsOf(generation).filter((backend) => !used.has(backend));
  await Promise.all([
    ...closing.map((backend) => backend.close()),
    ...parts.map((name) => generation[name]?.close()),
  ]);
}

/** Returns the backends of a generation. */
function backendsOf({ databases }: Generation): readonly Backend[] {
  return [...databases.values()].map(({ backend }) => backend);
}

/** Generations that get no more calls, and may still have running ones. */
interface FormerGenerations {
  /**
   * Closes what a generation has, once `ended` resolves, except for what the newest one or another former one uses, which closes with
   * the last of them.
   */
  retire(former: Generation, next: Generation, ended: Promise<void>): void;
  /** Closes all of them without waiting for their calls. */
  close(): Promise<void>;
}

/** Creates the keeper of former generations. It closes each one once, and logs failures. */
export function createFormerGenerations(log: Logger): FormerGenerations {
  const open = new Set<Generation>();
  const closing = new Set<Promise<void>>();
  let newest: Generation | undefined;

  function close(former: Generation): void {
    if (!open.delete(former)) return;
    const inUse = newest === undefined ? [...open] : [newest, ...open];
    const closed = closeGeneration(former, ...inUse)
      .catch((error: unknown) => log.error({ err: error }, "the former configuration is not closed"))
      .finally(() => closing.delete(closed));
    closing.add(closed);
  }
  return {
    retire(former, next, ended) {
      open.add(former);
      newest = next;
      void ended.then(() => close(former));
    },
    async close() {
      for (const former of [...open]) close(former);
      await Promise.all(closing);
    },
  };
}
