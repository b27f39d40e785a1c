import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";
import { openS3 } from "../stores/s3/client.ts";
import { findTarget, type HttpRequest, pathOfKey, type Target } from "../stores/s3/plain-requests.ts";
import type { StorageOptions } from "../stores/storage-options.ts";
import type { TimeLimits } from "../stores/time-limits.ts";

/** A request about a bucket or one of its objects, without a signature. */
export interface UpstreamRequest {
  readonly method: string;
  readonly bucket: string;
  /** Empty for a request about the bucket. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Readable | undefined;
}

/** An answer of the service, whose body must be read or destroyed. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readable;
}

/** The service that has the buckets, with one set of options. */
export interface Upstream {
  readonly limits: TimeLimits;
  /** Returns the address of a bucket, by which its objects are told from those of others. */
  addressOf(bucket: string): Promise<string>;
  /**
   * Signs and sends a request, once.
   *
   * @param beginMs longest time until the answer begins, in milliseconds; 0 for as long as the caller waits
   */
  send(request: UpstreamRequest, signal: AbortSignal, beginMs: number): Promise<UpstreamAnswer>;
  close(): void;
}

/** A bucket that needs more than the signatures of this program. */
export class UnsupportedBucketError extends Error {}

/**
 * Opens the service of some storage options, as the gateway's own store does: the library finds addresses and credentials, signs, and holds
 * the connections.
 *
 * @throws Error with a single line for a missing package or an invalid option
 */
async function openUpstream(options: StorageOptions): Promise<Upstream> {
  const access = await openS3(options);
  const { client, limits } = access;
  const targets = new Map<string, Promise<Target>>();

  function targetOf(bucket: string): Promise<Target> {
    const known = targets.get(bucket);
    if (known !== undefined) return known;
    const found = findTarget(access, client, bucket).then((target) => {
      if (target !== undefined) return target;
      throw new UnsupportedBucketError(`--cache-dir does not support the kind of bucket of ${bucket}`);
    });
    targets.set(bucket, found);
    // Credentials may come back.
    found.catch(() => targets.delete(bucket));
    return found;
  }
  return {
    limits,
    async addressOf(bucket) {
      const { base } = await targetOf(bucket);
      return `${base.protocol}//${base.hostname}:${base.port ?? ""}${base.path} ${bucket}`;
    },
    async send({ method, bucket, key, query, headers, body }, signal, beginMs) {
      const { base, signer } = await targetOf(bucket);
      const request: HttpRequest = {
        ...base,
        method,
        path: key === "" ? base.path || "/" : base.path + pathOfKey(key),
        query: { ...query },
        headers: { ...base.headers, ...headers },
        body,
      };
      const signingDate = new Date(Date.now() + client.config.systemClockOffset);
      const signed = await signer.sign(request, { signingDate });
      const options = { requestTimeout: beginMs, abortSignal: signal };
      const { response } = await client.config.requestHandler.handle(signed as never, options);
      return { status: response.statusCode, headers: response.headers, body: response.body as Readable };
    },
    close: () => client.destroy(),
  };
}

/** Storage options, and the access key id for them. */
export interface RegisteredStore {
  readonly accessKeyId: string;
  readonly options: StorageOptions;
}

/** The services that the engines of the process reach through the cache. */
export interface StoreRegistry {
  upstreamOf(accessKeyId: string): Upstream | undefined;
  /** Returns the access key id for a store. @throws Error with a single line for options that cannot be used */
  register(options: StorageOptions): Promise<string>;
  close(): void;
}

/** Options of {@link createStoreRegistry}. */
export interface StoreRegistryOptions {
  /** Options that were registered with an earlier listener. */
  readonly known: readonly RegisteredStore[];
  readonly onRegistered: (store: RegisteredStore) => void;
}

/** Creates the registry. Equal options have a single access key id, so that workers share a client of the service. */
export async function createStoreRegistry({
  known,
  onRegistered,
}: StoreRegistryOptions): Promise<StoreRegistry> {
  const upstreams = new Map<string, Upstream>();
  const idOf = new Map<string, Promise<string>>();
  const textOf = (store: StorageOptions) => JSON.stringify(Object.entries(store).sort());

  async function open(store: StorageOptions, accessKeyId: string): Promise<string> {
    upstreams.set(accessKeyId, await openUpstream(store));
    return accessKeyId;
  }
  async function register(store: StorageOptions): Promise<string> {
    const text = textOf(store);
    const found = idOf.get(text);
    if (found !== undefined) return found;
    const accessKeyId = randomBytes(24).toString("base64url");
    const opening = open(store, accessKeyId);
    idOf.set(text, opening);
    opening.then(
      () => onRegistered({ accessKeyId, options: store }),
      () => idOf.delete(text),
    );
    return opening;
  }
  for (const { accessKeyId, options: store } of known) {
    const opening = open(store, accessKeyId);
    idOf.set(textOf(store), opening);
    await opening;
  }
  return {
    upstreamOf: (accessKeyId) => upstreams.get(accessKeyId),
    register,
    close() {
      for (const upstream of upstreams.values()) upstream.close();
    },
  };
}
