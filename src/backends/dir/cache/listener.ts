import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { putNewest } from "../../../runtime/collections.ts";
import { createPace } from "../../../runtime/pace.ts";
import type { BlockCache } from "./block-cache.ts";
import { cacheableKindOf } from "./cacheable.ts";
import type { CacheControl, CachedFiles } from "./control.ts";
import type { CacheCounters } from "./counters.ts";
import { createKeptAnswers, headersOf, isPlainRead, writeHeadOf } from "./kept-answers.ts";
import { type CachedRead, createReadThrough, RefusedError, UncacheableError } from "./read-through.ts";
import { createSignatureCheck, parseRange } from "./s3-request.ts";
import type { Upstream, UpstreamRequest } from "./upstream.ts";
import { noteWrites } from "./written-objects.ts";

/** A listener on loopback that the engine takes for an S3 service. */
export interface CacheListener extends Pick<CacheControl, "fill" | "measure"> {
  readonly port: number;
  close(): Promise<void>;
}

/** Options of {@link startListener}. */
export interface ListenerOptions {
  readonly cache: BlockCache;
  readonly counters: CacheCounters;
  /** Secret with which requests have to be signed. Default: the access key id is enough. */
  readonly secret?: string | undefined;
  /** Returns the service of an access key id; undefined for one that this process has not drawn. */
  readonly upstreamOf: (accessKeyId: string) => Upstream | undefined;
  /** Returns the name of an object in the cache. */
  readonly nameOf: (object: string) => string;
  readonly onError: (error: Error) => void;
  /** Default: a free port. */
  readonly port?: number | undefined;
}

/** A request of the engine about a bucket. */
interface EngineRequest extends Omit<UpstreamRequest, "body" | "query"> {
  readonly query: Readonly<Record<string, string>>;
}

/** Starts the listener. It answers reads of immutable objects from the cache, and signs everything else and passes it on. */
export async function startListener(options: ListenerOptions): Promise<CacheListener> {
  const { cache, counters, upstreamOf, onError } = options;
  // A hash for each read would take as long as the rest of it.
  const names = new Map<string, string>();
  function nameOf(object: string): string {
    const known = names.get(object);
    if (known !== undefined) return known;
    const name = options.nameOf(object);
    putNewest(names, object, name, MAX_NAMES);
    return name;
  }
  const signerOf = options.secret === undefined ? accessKeyIdOf : createSignatureCheck(options.secret);
  const readThrough = createReadThrough(cache, counters);
  const kept = createKeptAnswers(cache, counters);

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const accessKeyId = signerOf(incoming) ?? "";
    if (kept.answer(accessKeyId, incoming, response)) return;
    const upstream = upstreamOf(accessKeyId);
    const request = upstream && parseRequest(incoming);
    if (upstream === undefined || request === undefined) {
      incoming.resume();
      return refuse(response, 403, "AccessDenied");
    }
    const { method, bucket, key } = request;
    const kind = cacheableKindOf(key);
    const nameIn = async (of: string) => nameOf(`${await upstream.addressOf(bucket)} ${of}`);
    if (method !== "GET" && method !== "HEAD") {
      const written = noteWrites(cache, request, incoming, nameIn);
      return pass(upstream, request, incoming, response, written);
    }
    const range = request.headers["range"];
    const parsed = range === undefined ? undefined : parseRange(range);
    const isPlain = Object.keys(request.query).length === 0 && (range === undefined || parsed !== undefined);
    if (kind === undefined || !isPlain || !isPlainRead(request.headers))
      return pass(upstream, request, incoming, response);
    const name = await nameIn(key);
    if (method === "HEAD") {
      const known = range === undefined ? cache.find(name) : undefined;
      if (known === undefined) return pass(upstream, request, incoming, response);
      return void response.writeHead(200, { ...headersOf(known), "content-length": known.size }).end();
    }
    kept.note(accessKeyId, incoming.url ?? "", name);
    const headers = protocolHeaders(request.headers);
    return read({ upstream, bucket, key, kind, name, range: parsed, headers }, request, incoming, response);
  }

  async function read(
    read: CachedRead,
    request: EngineRequest,
    incoming: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const started = performance.now();
    const found = await readThrough(read).catch((error: unknown) => {
      if (error instanceof UncacheableError) return undefined;
      throw error;
    });
    if (found === undefined) return pass(read.upstream, request, incoming, response);
    const { facts, start, end, bytes } = found;
    const isPart = request.headers["range"] !== undefined;
    writeHeadOf(response, facts, { start, end }, isPart);
    for await (const piece of bytes) {
      if (response.destroyed) break;
      if (!response.write(piece)) await untilWritable(response);
    }
    response.end();
    const answered = found.isHit() ? "hit" : "miss";
    if (answered === "hit") counters.add("hitBytes", end - start);
    counters.time(answered, (performance.now() - started) / 1000);
  }

  /** Passes a request and its answer on. */
  async function pass(
    upstream: Upstream,
    request: EngineRequest,
    incoming: IncomingMessage,
    response: ServerResponse,
    written?: ReturnType<typeof noteWrites>,
  ): Promise<void> {
    counters.add("forwarded", 1);
    const stop = new AbortController();
    // A body that broke off must not count as a shorter one.
    response.once("close", () => {
      if (!response.writableFinished) stop.abort();
    });
    await written?.begin();
    const hasBody =
      Number(incoming.headers["content-length"] ?? 0) > 0 || "transfer-encoding" in incoming.headers;
    const body = hasBody ? (written?.body ?? incoming) : undefined;
    const found = await upstream.send({ ...request, body }, stop.signal, 0);
    await written?.end(found);
    response.writeHead(found.status, endToEnd(found.headers));
    if (request.method === "HEAD") {
      found.body.resume();
      response.end();
    } else await pipeline(found.body, response);
  }

  function requireUpstream(accessKeyId: string): Upstream {
    const upstream = upstreamOf(accessKeyId);
    if (upstream === undefined) throw new Error("the store is not registered");
    return upstream;
  }
  async function measure({ accessKeyId, bucket, keys }: CachedFiles, signal: AbortSignal): Promise<number[]> {
    const address = await requireUpstream(accessKeyId).addressOf(bucket);
    // A table may have a million files, and reads of other tables wait for this thread.
    const pace = createPace();
    const sizes: number[] = [];
    for (const key of keys) {
      // Their names would push out those of the files that are read.
      sizes.push(cache.bytesOf(options.nameOf(`${address} ${key}`)));
      if (!pace.isDue()) continue;
      await pace.pause();
      signal.throwIfAborted();
    }
    return sizes;
  }
  async function fill({ accessKeyId, bucket, keys }: CachedFiles, signal: AbortSignal): Promise<void> {
    const upstream = requireUpstream(accessKeyId);
    let bytes = 0;
    for (const key of keys) {
      const kind = cacheableKindOf(key);
      if (kind === undefined) continue;
      const name = nameOf(`${await upstream.addressOf(bucket)} ${key}`);
      const known = cache.find(name);
      if (known !== undefined && cache.bytesOf(name) >= known.size) {
        cache.prefer(known);
        bytes += known.size;
        continue;
      }
      const found = await readThrough({ upstream, bucket, key, kind, name, range: undefined });
      if (found === undefined) continue;
      cache.prefer(found.facts);
      for await (const piece of found.bytes) {
        bytes += piece.length;
        // The rest would only evict the beginning.
        if (signal.aborted || bytes > cache.roomBytes) return;
        if (bytes % FILL_PAUSE < piece.length) await cache.settled();
      }
    }
    await cache.settled();
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      if (error instanceof RefusedError && !response.headersSent) {
        const headers = { ...endToEnd(error.headers), "content-length": error.body.length };
        return void response.writeHead(error.status, headers).end(error.body);
      }
      // The engine then sees what it would see without the listener: the end of a connection.
      if (!response.destroyed) onError(error as Error);
      response.destroy();
    });
  });
  // The engine pools its connections, and a request fails if the server closes its connection at that moment.
  Object.assign(server, { sendDate: false, keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 });
  server.maxConnections = MAX_CONNECTIONS;
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  server.on("error", onError);
  return {
    port: (server.address() as AddressInfo).port,
    fill,
    measure,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Resolves when an answer takes more, or its reader has gone. */
function untilWritable(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}

/** Maximum number of names of objects that are remembered. */
const MAX_NAMES = 10_000;

/** Maximum number of connections: a bound for what other programs of the machine can take. */
const MAX_CONNECTIONS = 8_192;

/** Bytes after which a fill waits for the disk. */
const FILL_PAUSE = 8 * 2 ** 20;

/** Returns the access key id with which a request is signed; undefined without one. */
function accessKeyIdOf({ headers }: IncomingMessage): string | undefined {
  return /^AWS4-HMAC-SHA256 Credential=([^/,]+)\//.exec(headers.authorization ?? "")?.[1];
}

/** Headers that belong to a connection or to the signature of the engine. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "expect", "host"],
  ...["authorization", "x-amz-date", "x-amz-security-token", "transfer-encoding"],
]);

/** Parses a request with the bucket in the path; undefined for one that cannot be signed again. */
function parseRequest(incoming: IncomingMessage): EngineRequest | undefined {
  const { method = "", url = "" } = incoming;
  const [path = "", search = ""] = [url.split("?", 1)[0], url.slice((url.split("?", 1)[0] ?? "").length + 1)];
  const [, bucket = "", key = ""] = /^\/([^/]+)(?:\/(.*))?$/s.exec(path) ?? [];
  const headers = endToEnd(incoming.headers as Readonly<Record<string, string>>);
  // Signatures of the pieces would be those of the engine.
  if (bucket === "" || headers["x-amz-content-sha256"]?.startsWith("STREAMING-AWS4")) return undefined;
  try {
    const query = Object.fromEntries(new URLSearchParams(search));
    return { method, bucket: decodeURIComponent(bucket), key: decodeURIComponent(key), query, headers };
  } catch {
    return undefined;
  }
}

function endToEnd(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name)));
}

/** Returns the headers of the protocol, such as that of a requester who pays, which the service needs for each request. */
function protocolHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-amz-")));
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const message = "this listener is for the engine of its own process";
  response.writeHead(status, { "content-type": "application/xml" });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`);
}
