import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { loadLibrary } from "../backends/load-library.ts";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options/groups.ts";
import { readOptionFile } from "../config/secret-files.ts";
import type { CallerCounters } from "../pipeline/limits/caller-limits.ts";
import {
  type BucketServer,
  createSharedBuckets,
  guardServer,
  type TokenGrant,
  type TokenRequest,
} from "../pipeline/limits/shared-buckets.ts";
import { backoffMs, monotonicNow } from "../runtime/clocks.ts";
import { readText } from "../runtime/files/files-in-time.ts";

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

/** Options of {@link connectBuckets}. */
export interface RedisOptions {
  readonly url: string;
  /** File with the password, which is read for each connection. Default: no password. */
  readonly passwordFile?: string | undefined;
  /** Certificates, in PEM, that may have signed that of the server. Default: those that Node.js trusts. */
  readonly ca?: string | undefined;
  /** Beginning of the keys. */
  readonly prefix: string;
  /**
   * How long nothing is answered until the connection is replaced, in milliseconds: the library keeps each command until it is answered
   * or the connection ends. Default: 10,000.
   */
  readonly silenceMs?: number | undefined;
}

/** Buckets on a server of the Redis protocol. */
export interface RedisBuckets extends BucketServer {
  close(): void;
}

/** Longest pause between attempts to connect, in milliseconds. */
const LONGEST_PAUSE_MS = 2_000;
const CONNECT_MS = 1_000;

/** Maximum number of bytes until the next answer is complete; the library collects them without a limit. */
const MAX_ANSWER_BYTES = 2 ** 20;

/**
 * Takes tokens from a bucket, which is stored as the time at which it is full again, in microseconds by the clock of the server.
 *
 * KEYS: bucket. ARGV: microseconds until a token is filled in, size of the bucket, wanted tokens, returned tokens.
 */
const SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local token, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local wanted, returned = tonumber(ARGV[3]), tonumber(ARGV[4])
local full = math.max(now, (tonumber(redis.call('GET', KEYS[1])) or now) - returned * token)
local free = math.floor((now + burst * token - full) / token + 1e-6)
local granted = math.max(0, math.min(wanted, free))
full = full + granted * token
if full > now then
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
else
  redis.call('DEL', KEYS[1])
end
local wait = math.max(0, math.ceil((full + token - burst * token - now) / 1000))
return { granted, wait, math.floor((full - now) / 1000) }
`;

/**
 * Connects to a server of the Redis protocol. If it cannot be reached, the connection is tried again until it is closed, and
 * requests fail meanwhile.
 *
 * @throws Error with a single line for a missing package
 */
export async function connectBuckets(options: RedisOptions): Promise<RedisBuckets> {
  const { url, passwordFile, ca, prefix, silenceMs = 10_000 } = options;
  const { createClient, defineScript } = await loadLibrary(
    "--rate-limit-redis",
    "@redis/client",
    () => import("@redis/client"),
  );
  const place = new URL(url);
  const username = decodeURIComponent(place.username) || undefined;
  // The library would take the user of a URL as one without a password.
  place.username = "";
  const take = defineScript({
    SCRIPT,
    NUMBER_OF_KEYS: 1,
    parseCommand(parser, { bucket, rate, wanted, returned }: TokenRequest) {
      parser.pushKey(`${prefix}:${bucket}`);
      parser.push(String(1e6 / rate.perSecond), String(rate.burst), String(wanted), String(returned));
    },
    transformReply: grantOf,
  });
  const open = () =>
    createClient({
      url: place.href,
      scripts: { take },
      // The version that every server speaks.
      RESP: 2,
      disableClientInfo: true,
      // A command that waits for a connection would be answered long after its call.
      disableOfflineQueue: true,
      ...(passwordFile !== undefined && {
        credentialsProvider: {
          type: "async-credentials-provider",
          credentials: async () => ({ username, password: (await readText(passwordFile)).trim() }),
        },
      }),
      socket: {
        connectTimeout: CONNECT_MS,
        reconnectStrategy: (attempts) => backoffMs(attempts, 100, LONGEST_PAUSE_MS),
        ...(ca !== undefined && { tls: true, ca }),
      },
    });
  let failure: unknown;
  let timer: NodeJS.Timeout | undefined;
  function connect() {
    const client = open();
    client.on("error", (error: unknown) => {
      failure = error;
    });
    const { promise: tried, resolve } = Promise.withResolvers<void>();
    client.once("ready", resolve);
    client.once("error", () => resolve());
    const own = { client, tried, owed: 0, heardAt: 0, bytes: 0 };
    const limit = (socket: Socket) => {
      own.bytes = 0;
      socket.on("data", ({ length }) => {
        own.bytes += length;
        if (own.bytes > MAX_ANSWER_BYTES) socket.destroy(new Error("an answer has no end"));
      });
    };
    withSockets(limit, () => client.connect()).catch(() => resolve());
    return own;
  }
  let connection = connect();
  /** Replaces a silent connection, also while nobody calls. */
  function watch(own: typeof connection, left: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (own.owed === 0 || own !== connection) return;
      const more = own.heardAt + silenceMs - monotonicNow();
      if (more > 0) return watch(own, more);
      failure = new Error(`no answer in ${silenceMs} ms`);
      own.client.destroy();
      connection = connect();
    }, left).unref();
  }
  await connection.tried;
  return {
    async take(request) {
      const own = connection;
      // The library would say of every connection that it is not there, but not why.
      if (!own.client.isReady) throw failure ?? new Error("not connected");
      own.owed += 1;
      if (own.owed === 1) {
        own.heardAt = monotonicNow();
        watch(own, silenceMs);
      }
      try {
        return await own.client.take(request);
      } finally {
        own.owed -= 1;
        own.bytes = 0;
        own.heardAt = monotonicNow();
      }
    },
    close() {
      clearTimeout(timer);
      connection.client.destroy();
    },
  };
}

/** @throws Error for an answer that is none of the script's */
function grantOf(answer: unknown): TokenGrant {
  const numbers = Array.isArray(answer) ? answer : [];
  const [granted, waitMs, fullMs] = numbers;
  if (numbers.length !== 3 || !numbers.every((each) => Number.isSafeInteger(each) && each >= 0))
    throw new Error("the server answers something else than a grant");
  return { granted, waitMs, fullMs };
}

const watchers = new AsyncLocalStorage<(socket: Socket) => void>();

let isWatching = false;

/** Connects by a library that does not show its sockets, and passes on each of them, also of later connections that it makes by itself. */
export function withSockets<T>(onSocket: (socket: Socket) => void, connect: () => T): T {
  if (!isWatching) {
    isWatching = true;
    subscribe("net.client.socket", (message) => {
      watchers.getStore()?.((message as { readonly socket: Socket }).socket);
    });
  }
  return watchers.run(onSocket, connect);
}
