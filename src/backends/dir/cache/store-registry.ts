import { randomBytes } from "node:crypto";
import type { StorageOptions } from "../stores/storage-options.ts";
import { openUpstream, type Upstream } from "./upstream.ts";

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
