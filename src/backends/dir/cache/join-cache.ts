import type { CacheFigures } from "../../../namespace/figures.ts";
import { placeOf } from "../stores/open-store.ts";
import type { StorageOptions } from "../stores/storage-options.ts";
import { askControl } from "./control.ts";
import { figuresOf, openCounters } from "./counters.ts";

/** How a thread of the process reaches the cache; it contains a secret. */
export interface CacheAccess {
  readonly port: number;
  /** Secret of the process: the engine's key, and the name of the channels between the threads. */
  readonly secret: string;
  readonly counters: SharedArrayBuffer;
}

/** The cache of the process, as a backend uses it. */
export interface BucketCache {
  figures(): CacheFigures;
  /**
   * Reads whole files into the cache, in their order, until it has no more room. Files that are not cacheable are left out.
   *
   * @param options those with which the gateway itself reaches the bucket
   */
  fill(options: StorageOptions, bucket: string, keys: readonly string[], signal: AbortSignal): Promise<void>;
  /** Returns the sizes of the blocks of some files that are in the cache, in bytes. */
  measure(
    options: StorageOptions,
    bucket: string,
    keys: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly number[]>;
  /** Returns the options with which the engine reaches a bucket through the cache, of those with which it reaches the service itself. */
  engineOptions(options: StorageOptions): Promise<StorageOptions>;
}

/**
 * Options that the listener takes over, without the names of their service: what is left, such as encryption by the service, the engine
 * still asks for itself.
 */
const TAKEN_OVER: ReadonlySet<string> = new Set([
  ...["endpoint", "endpoint_url", "endpoint_url_s3", "region", "default_region", "allow_http"],
  ...["virtual_hosted_style_request", "skip_signature", "s3_express", "unsigned_payload"],
  ...["access_key_id", "secret_access_key", "session_token", "token", "imdsv1_fallback", "metadata_endpoint"],
  ...["container_credentials_relative_uri", "container_credentials_full_uri"],
  ...["container_authorization_token_file", "web_identity_token_file", "role_arn", "role_session_name"],
  ...["endpoint_url_sts", "proxy_url", "proxy_ca_certificate", "proxy_excludes"],
]);

/**
 * Reads per second of the engine, which by itself makes at most 5,000, and 2,000 at first, as S3 wants it of a client: a search makes up to 15,
 * nearly all of which the listener answers. Each second in which a service refuses requests as too many still halves the rate.
 */
const REQUEST_RATE = {
  lance_aimd_initial_rate: "20000",
  lance_aimd_max_rate: "20000",
  lance_aimd_burst_capacity: "2000",
};

/** Joins the cache that another thread has started. */
export function joinCache(access: CacheAccess): BucketCache {
  const { port, secret } = access;
  const counters = openCounters(access.counters);
  const { register, fill, measure } = askControl(secret);
  return {
    figures: () => figuresOf(counters),
    async fill(options, bucket, keys, signal) {
      await fill({ accessKeyId: await register(options), bucket, keys }, signal);
    },
    measure: async (options, bucket, keys, signal) =>
      measure({ accessKeyId: await register(options), bucket, keys }, signal),
    async engineOptions(options) {
      const accessKeyId = await register(options);
      const kept = Object.entries(options).filter(
        ([name]) => !TAKEN_OVER.has(name.toLowerCase().replace(/^(?:aws|s3)_/, "")),
      );
      return {
        ...REQUEST_RATE,
        ...Object.fromEntries(kept),
        aws_endpoint: `http://127.0.0.1:${port}`,
        allow_http: "true",
        aws_region: "us-east-1",
        aws_access_key_id: accessKeyId,
        aws_secret_access_key: secret,
        aws_virtual_hosted_style_request: "false",
        aws_skip_signature: "false",
        // The listener passes on what the engine says of a body, and the service checks it.
        aws_unsigned_payload: "false",
      };
    },
  };
}

/** Returns the options with which the engine reaches a root: through the cache, if there is one and the root is in S3. */
export async function throughCache(
  { root, cache }: { readonly root: string; readonly cache?: BucketCache | undefined },
  options: StorageOptions,
): Promise<StorageOptions> {
  return cache !== undefined && placeOf(root)?.scheme === "s3" ? cache.engineOptions(options) : options;
}

/** Returns the cache of a root; undefined without one. */
export function cacheOfRoot(
  { root, cache }: { readonly root: string; readonly cache?: BucketCache | undefined },
  options: StorageOptions,
) {
  const place = placeOf(root);
  if (cache === undefined || place?.scheme !== "s3") return undefined;
  const { bucket } = place;
  return {
    fill: (keys: readonly string[], signal: AbortSignal) => cache.fill(options, bucket, keys, signal),
    measure: (keys: readonly string[], signal: AbortSignal) => cache.measure(options, bucket, keys, signal),
  };
}
