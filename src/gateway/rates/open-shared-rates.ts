import type { Logger } from "pino";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { readOptionFile } from "../../config/secret-files.ts";
import type { CallerCounters } from "../../pipeline/limits/caller-limits.ts";
import { createSharedBuckets, guardServer } from "../../pipeline/limits/shared-buckets.ts";

/** Rates that a gateway shares with others. */
export interface SharedRates {
  readonly shareBuckets: NonNullable<CallerCounters["shareBuckets"]>;
  close(): void;
}

type SharedRateOptions = Pick<
  ServeOptions,
  "rateLimits" | "rateLimitRedis" | "rateLimitRedisPasswordFile" | "rateLimitRedisCa" | "rateLimitRedisPrefix"
>;

/** Options that do nothing without a server. */
const NEEDS_SERVER = [
  ["rateLimitRedisPasswordFile", "--rate-limit-redis-password-file"],
  ["rateLimitRedisCa", "--rate-limit-redis-ca"],
] as const satisfies readonly (readonly [keyof SharedRateOptions, string])[];

/**
 * Connects to the server by which gateways share rates; undefined if the options name none. A server that cannot be reached is
 * logged.
 *
 * @param onFailure counts requests that failed
 * @throws UsageError for options that contradict each other, and for files that cannot be read
 */
export async function openSharedRates(
  options: SharedRateOptions,
  log: Logger,
  onFailure: () => void,
): Promise<SharedRates | undefined> {
  const { rateLimits, rateLimitRedis: url, rateLimitRedisPasswordFile: passwordFile } = options;
  const { rateLimitRedisCa: caFile, rateLimitRedisPrefix: prefix } = options;
  if (url === undefined) {
    const [, flag] = NEEDS_SERVER.find(([name]) => options[name] !== undefined) ?? [];
    if (flag !== undefined) throw new UsageError(`${flag} requires --rate-limit-redis`);
    return undefined;
  }
  if (rateLimits.length === 0) throw new UsageError("--rate-limit-redis requires --rate-limit");
  if (caFile !== undefined && !url.startsWith("rediss:"))
    throw new UsageError("--rate-limit-redis-ca requires --rate-limit-redis rediss://…");
  if (passwordFile !== undefined) await readOptionFile("--rate-limit-redis-password-file", passwordFile);
  const ca = caFile === undefined ? undefined : await readOptionFile("--rate-limit-redis-ca", caFile);
  const { connectBuckets } = await import("./redis-buckets.ts");
  const buckets = await connectBuckets({ url, passwordFile, ca, prefix });
  const server = guardServer(buckets, { log, onFailure });
  await server
    .take({ bucket: "start", rate: { perSecond: 1, burst: 1 }, wanted: 0, returned: 0 })
    .catch(() => {});
  return {
    shareBuckets(rate, local) {
      const name = `${rate.scope}:${rate.perSecond}:${rate.burst}`;
      return createSharedBuckets({ server, name, rate, local });
    },
    close: buckets.close,
  };
}
