import { request } from "node:http";
import type { CacheFigures } from "../../../namespace/figures/cache-figures.ts";
import { placeOf } from "../stores/open-store.ts";
import type { StorageOptions } from "../stores/storage-options.ts";
import { figuresOf, openCounters } from "./counters.ts";

/** How a thread of the process reaches the cache; it contains a secret. */
export interface CacheAccess {
  readonly port: number;
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
  /** Returns the options with which the engine reaches a bucket through the cache, of those with which it reaches the service itself. */
  engineOptions(options: StorageOptions): Promise<StorageOptions>;
}

/** Header with the secret of the process, for requests that the engine does not make. */
export const CACHE_SECRET_HEADER = "x-lance-gateway-secret";

/** Path of the requests that register the options of a service. */
export const STORES_PATH = "/-/stores";

/** Path of the requests that read files into the cache. */
export const FILL_PATH = "/-/fill";

/** Body of a request that reads files into the cache. */
export interface FillRequest extends StoreKey {
  readonly bucket: string;
  readonly keys: readonly string[];
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

/** Joins the cache that another thread has started. */
export function joinCache(access: CacheAccess): BucketCache {
  const { port, secret } = access;
  const counters = openCounters(access.counters);
  async function register(options: StorageOptions): Promise<string> {
    return (JSON.parse(await post(access, STORES_PATH, { options })) as StoreKey).accessKeyId;
  }
  return {
    figures: () => figuresOf(counters),
    async fill(options, bucket, keys, signal) {
      const accessKeyId = await register(options);
      await post(access, FILL_PATH, { accessKeyId, bucket, keys } satisfies FillRequest, signal);
    },
    async engineOptions(options) {
      const accessKeyId = await register(options);
      const kept = Object.entries(options).filter(
        ([name]) => !TAKEN_OVER.has(name.toLowerCase().replace(/^(?:aws|s3)_/, "")),
      );
      return {
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

/** Reads files of a directory into its cache, those of the first keys first. */
type FillCache = (keys: readonly string[], signal: AbortSignal) => Promise<void>;

/** Returns the function that fills the cache of a root; undefined without a cache. */
export function fillingCache(
  { root, cache }: { readonly root: string; readonly cache?: BucketCache | undefined },
  options: StorageOptions,
): FillCache | undefined {
  const place = placeOf(root);
  if (cache === undefined || place?.scheme !== "s3") return undefined;
  return (keys, signal) => cache.fill(options, place.bucket, keys, signal);
}

/** Answer to the registration of a store. */
export interface StoreKey {
  /** With this id, the engine's requests are for the store. */
  readonly accessKeyId: string;
}

/** @throws Error with a single line, if the cache refuses. */
function post(
  { port, secret }: CacheAccess,
  path: string,
  body: object,
  signal?: AbortSignal,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { [CACHE_SECRET_HEADER]: secret, "content-type": "application/json" };
  const outgoing = request(
    { host: "127.0.0.1", port, path, method: "POST", headers, agent: false, ...(signal && { signal }) },
    (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("error", reject);
      answer.on("end", () => {
        const text = Buffer.concat(pieces).toString();
        if (answer.statusCode === 200) resolve(text);
        else reject(new Error(text));
      });
    },
  );
  outgoing.on("error", reject);
  outgoing.end(JSON.stringify(body));
  return promise;
}
