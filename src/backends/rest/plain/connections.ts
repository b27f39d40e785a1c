import type { Socket } from "node:net";
import type { Dispatcher, Client as UndiciClient } from "undici";
import { buildConnector, Client, errors } from "../../../runtime/internals/undici.ts";
import type { Receiver } from "../bodies/receiver.ts";
import type { UpstreamRequest } from "../transport/transport.ts";
import {
  type ConnectionPool,
  type ConnectionTimes,
  PlainConnection,
  PlainExchange,
  type SentConnection,
} from "./connection.ts";

/** Options of {@link PlainConnections}. */
export interface PlainOptions {
  readonly origin: string;
  /** Prefix of all targets. */
  readonly base: string;
  readonly times: ConnectionTimes;
  readonly maxConnections: number;
  readonly connecting: buildConnector.BuildOptions;
  /** undici's options for connections whose answers it reads. */
  readonly settings: UndiciClient.Options;
}

/** Longest time between two checks of the connections, in milliseconds. */
const CHECK_MS = 500;
/** How long undici makes all requests after an answer that only undici reads, in milliseconds. */
const PAUSE_MS = 60_000;

/**
 * A short way beside undici for requests with whole bodies whose answers have a length: connections of its own, as many as there
 * are requests at a time. Callers that leave while their connection opens leave it to others. undici reads any other answer.
 *
 * A request goes out at the end of its turn of the event loop, on a connection that was free in the turn before: bytes that the
 * server has sent unasked have been read by then, and do not pass for its answer.
 */
export class PlainConnections implements ConnectionPool {
  now = performance.now();
  readonly #options: PlainOptions;
  readonly #url: URL;
  readonly #host: string;
  readonly #checkMs: number;
  readonly #all = new Set<PlainConnection>();
  #free: PlainConnection[] = [];
  #freed: PlainConnection[] = [];
  #waiting: PlainExchange[] = [];
  #isEndAwaited = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly #ended = Promise.withResolvers<void>();
  #pausedUntil = 0;

  constructor(options: PlainOptions) {
    this.#options = options;
    this.#url = new URL(options.origin);
    this.#host = this.#url.host;
    const { firstByteMs, idleMs, keepAliveMs } = options.times;
    const limits = [firstByteMs, idleMs, keepAliveMs].filter((limit) => limit > 0);
    this.#checkMs = Math.min(CHECK_MS, ...limits.map((limit) => limit / 4));
  }

  /** Sends a request; returns false without having touched it if undici has to make it. */
  send(request: UpstreamRequest, options: Dispatcher.DispatchOptions, receiver: Receiver): boolean {
    if (this.#isClosed || (this.#pausedUntil > 0 && performance.now() < this.#pausedUntil)) return false;
    const text = writePlainRequest(request, this.#host, this.#options.base);
    if (text === undefined) return false;
    this.#waiting.push(new PlainExchange(text, options, receiver));
    this.#awaitEnd();
    return true;
  }

  /** Closes each connection after its request, and waits for that. */
  close(): Promise<void> {
    this.#isClosed = true;
    for (const connection of [...this.#free, ...this.#freed]) connection.destroy();
    this.#tellEnd();
    return this.#ended.promise;
  }

  /** Ends all requests. */
  destroy(): void {
    this.#isClosed = true;
    for (const connection of this.#all) connection.destroy(new errors.ClientDestroyedError());
    for (const exchange of this.#waiting.splice(0)) {
      exchange.receiver.onResponseError(exchange, new errors.ClientDestroyedError());
    }
  }

  open(buffer: Uint8Array, onBytes: (size: number) => void, onOpened: (error: Error | null) => void): Socket {
    const { protocol, host, hostname, port } = this.#url;
    const callback = (size: number) => {
      onBytes(size);
      return true;
    };
    const connect = buildConnector({ ...this.#options.connecting, onread: { buffer, callback } } as never);
    const place = { protocol, host, hostname: hostname.replace(/^\[|\]$/g, ""), port };
    return connect(place, onOpened as never) as unknown as Socket;
  }

  handOver({ options, receiver }: PlainExchange, connection: SentConnection): void {
    this.#pausedUntil = performance.now() + PAUSE_MS;
    const { origin, settings } = this.#options;
    const client = new Client(origin, { ...settings, connect: connection.connect });
    client.dispatch(options, receiver);
    client.close().catch(() => {});
  }

  onFree(connection: PlainConnection): void {
    if (this.#isClosed) connection.destroy();
    this.#freed.push(connection);
    this.#awaitEnd();
  }

  onClosed(connection: PlainConnection): void {
    this.#all.delete(connection);
    if (this.#waiting.length > 0) this.#awaitEnd();
    if (this.#all.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#tellEnd();
  }

  #awaitEnd(): void {
    if (this.#isEndAwaited) return;
    this.#isEndAwaited = true;
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = () => {
    const [waiting, freed] = [this.#waiting, this.#freed];
    [this.#waiting, this.#freed, this.#isEndAwaited] = [[], [], false];
    for (const exchange of waiting) {
      if (exchange.receiver.isOver) continue;
      let connection = this.#free.pop();
      while (connection?.isUsable === false) connection = this.#free.pop();
      if (connection !== undefined) connection.send(exchange);
      // A connection of this turn is free in the next one, others when their requests have ended.
      else if (this.#waiting.length < freed.length || this.#isFull) this.#waiting.push(exchange);
      else this.#connect(exchange);
    }
    this.#free.push(...freed);
    this.#tellEnd();
    if (this.#waiting.length > 0 && freed.length > 0) this.#awaitEnd();
    // In a busy process, connections change hands too often for that.
    else if (this.#free.length >= this.#all.size) for (const connection of this.#free) connection.rest();
  };

  get #isFull(): boolean {
    return this.#all.size >= this.#options.maxConnections;
  }

  #tellEnd(): void {
    if (this.#isClosed && this.#all.size === 0 && this.#waiting.length === 0) this.#ended.resolve();
  }

  #connect(exchange: PlainExchange): void {
    if (this.#timer === undefined) {
      this.now = performance.now();
      this.#timer = setInterval(() => this.#check(), this.#checkMs).unref();
    }
    this.#all.add(new PlainConnection(this, exchange));
  }

  #check(): void {
    this.now = performance.now();
    for (const connection of this.#all) connection.check(this.#options.times, this.#checkMs);
    this.#free = this.#free.filter(({ isUsable }) => isUsable);
  }
}

const TARGET = /^\/[\x21-\x7e]*$/;
const NAME = /^[!#$%&'*+.^_`|~\da-z-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Headers that say where a message goes or ends, or what becomes of its connection. */
const FRAMING: ReadonlySet<string> = new Set([
  ...["host", "connection", "keep-alive", "proxy-connection", "content-length", "transfer-encoding"],
  ...["te", "trailer", "upgrade", "expect"],
]);
/** Names that need no look. */
const USUAL: ReadonlySet<string> = new Set([
  ...["accept", "accept-encoding", "authorization", "content-type", "user-agent"],
  ...["traceparent", "x-api-key", "x-request-id", "x-request-timeout-ms"],
]);

/**
 * Writes a request whose body is a text and whose answer is collected, in UTF-8.
 *
 * @param host value of the header, a host with its port
 * @param base prefix of the target
 * @returns undefined for any other request, and for one with headers that need a decision
 */
function writePlainRequest(
  { method, target, headers, body = "", streams }: UpstreamRequest,
  host: string,
  base: string,
): string | undefined {
  const path = base + target;
  const isPost = method === "POST";
  if (streams || typeof body !== "string" || !TARGET.test(path)) return undefined;
  if (!isPost && (method !== "GET" || body !== "")) return undefined;
  let values = "";
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  for (let at = 0; at < headers.length; at += 2) {
    const [name, value] = [headers[at] as string, headers[at + 1] as string];
    if (!USUAL.has(name) && (!NAME.test(name) || FRAMING.has(name))) return undefined;
    values += value;
    text += `${name}: ${value}\r\n`;
  }
  // A single look at all of them takes less time than a look at each.
  if (!VALUE.test(values)) return undefined;
  return isPost ? `${text}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}` : `${text}\r\n`;
}
