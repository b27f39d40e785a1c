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
export async function openUpstream(options: StorageOptions): Promise<Upstream> {
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
