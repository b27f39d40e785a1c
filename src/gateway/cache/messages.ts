import type { RegisteredStore } from "../../backends/dir/cache/store-registry.ts";

/** Data with which the thread of the cache begins. */
export interface CacheStart {
  readonly directory: string;
  /** Size of its files, in bytes. */
  readonly maxBytes: number;
  readonly memoryBytes: number;
  /** Secret with which its files are encrypted. */
  readonly key: Uint8Array | undefined;
  /** Secret of the process, which names the channels to its other threads. */
  readonly secret: string;
  /** 0 for a free port. */
  readonly port: number;
  readonly counters: SharedArrayBuffer;
  /** Stores that an earlier thread had registered. */
  readonly stores: readonly RegisteredStore[];
}

/** Messages of the main thread. */
export type ToCache =
  /** The directory is free, so that its files may be used. */
  { readonly type: "attach" } | { readonly type: "close" };

/** Messages of the thread of the cache. */
export type FromCache =
  | { readonly type: "listening"; readonly port: number }
  | { readonly type: "registered"; readonly store: RegisteredStore }
  /** The files are in use; or cannot be, for a reason. */
  | { readonly type: "attached"; readonly failure: string | undefined }
  | { readonly type: "failed"; readonly what: "disk" | "bucket"; readonly message: string }
  | { readonly type: "closed" };
