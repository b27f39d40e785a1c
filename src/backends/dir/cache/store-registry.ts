import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { StorageOptions } from "../stores/storage-options.ts";
import { CACHE_SECRET_HEADER, FILL_PATH, type FillRequest, STORES_PATH } from "./join-cache.ts";
import { openUpstream, type Upstream } from "./upstream.ts";

/** Storage options, and the access key id for them. */
export interface RegisteredStore {
  readonly accessKeyId: string;
  readonly options: StorageOptions;
}

/** The services that the engines of the process reach through the cache. */
export interface StoreRegistry {
  upstreamOf(accessKeyId: string): Upstream | undefined;
  /** Answers the requests of the gateway itself; returns whether a request is one. */
  control(
    incoming: IncomingMessage,
    response: ServerResponse,
    fill: (request: FillRequest, signal: AbortSignal) => Promise<void>,
  ): boolean;
  close(): void;
}

/** Options of {@link createStoreRegistry}. */
export interface StoreRegistryOptions {
  /** Secret of the process. */
  readonly secret: string;
  /** Options that were registered with an earlier listener. */
  readonly known: readonly RegisteredStore[];
  readonly onRegistered: (store: RegisteredStore) => void;
}

/** Largest request of the gateway, in bytes: a table may have many files. */
const MAX_BYTES = 256 * 2 ** 20;

/** Creates the registry. Equal options have a single access key id, so that workers share a client of the service. */
export async function createStoreRegistry(options: StoreRegistryOptions): Promise<StoreRegistry> {
  const { secret, known, onRegistered } = options;
  const upstreams = new Map<string, Upstream>();
  const idOf = new Map<string, Promise<string>>();
  const textOf = (store: StorageOptions) => JSON.stringify(Object.entries(store).sort());

  async function open(store: StorageOptions, accessKeyId: string): Promise<string> {
    upstreams.set(accessKeyId, await openUpstream(store));
    return accessKeyId;
  }
  async function register(incoming: IncomingMessage): Promise<string> {
    const store = (JSON.parse(await textIn(incoming)) as { options: StorageOptions }).options;
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
    control(incoming, response, fill) {
      const { url = "" } = incoming;
      if (![STORES_PATH, FILL_PATH].includes(url) || !hasSecret(incoming, secret)) return false;
      const stop = new AbortController();
      response.once("close", () => stop.abort());
      const answer = async () => {
        if (url === STORES_PATH) return { accessKeyId: await register(incoming) };
        await fill(JSON.parse(await textIn(incoming)) as FillRequest, stop.signal);
        return {};
      };
      answer().then(
        (found) => response.end(JSON.stringify(found)),
        (error: Error) => response.writeHead(400).end(error.message),
      );
      return true;
    },
    close() {
      for (const upstream of upstreams.values()) upstream.close();
    },
  };
}

function hasSecret({ headers }: IncomingMessage, secret: string): boolean {
  const given = Buffer.from(String(headers[CACHE_SECRET_HEADER] ?? ""));
  const expected = Buffer.from(secret);
  return given.byteLength === expected.byteLength && timingSafeEqual(given, expected);
}

async function textIn(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of incoming) {
    bytes += (piece as Buffer).length;
    if (bytes > MAX_BYTES) throw new Error("the request is too long");
    pieces.push(piece as Buffer);
  }
  return Buffer.concat(pieces).toString();
}
