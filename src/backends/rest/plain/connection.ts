import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import { type buildConnector, errors } from "../../../runtime/internals/undici.ts";
import type { PieceSource } from "../bodies/piece-queue.ts";
import type { Receiver } from "../bodies/receiver.ts";
import { readPlainHead } from "./head.ts";

/** The pool of a connection. */
export interface ConnectionPool {
  /** Time of the last check, in milliseconds. */
  readonly now: number;
  /** Opens a socket whose bytes are read into a buffer. */
  open(buffer: Uint8Array, onBytes: (size: number) => void, onOpened: (error: Error | null) => void): Socket;
  /** Takes a connection back that can have another request. */
  onFree(connection: PlainConnection): void;
  onClosed(connection: PlainConnection): void;
  /** Lets undici read an answer from a connection that nothing else uses. */
  handOver(exchange: PlainExchange, connection: SentConnection): void;
}

/** Limits of a connection, in milliseconds; 0 for no limit. */
export interface ConnectionTimes {
  readonly firstByteMs: number;
  readonly idleMs: number;
  /** How long it is kept without a request, unless the server says otherwise. */
  readonly keepAliveMs: number;
  readonly ageMs: number;
}

const READ_BYTES = 16 * 1024;
const HEAD_END = "\r\n\r\n";
/** How much earlier than the server it ends when idle, and how long it is kept at most, in milliseconds. */
const [AHEAD_MS, MAX_KEEP_ALIVE_MS] = [2_000, 600_000];

/** A connection with a single request at a time. */
export class PlainConnection {
  readonly #pool: ConnectionPool;
  readonly #buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  readonly #cut = () => this.destroy();
  readonly #openedAt: number;
  readonly #socket: Socket;
  #error: Error | undefined;
  #exchange: PlainExchange | undefined;
  /** The rest of an answer that undici reads. */
  #other: SentConnection | undefined;
  /** Bytes of the body that are missing. Default: the head is missing, too. */
  #left: number | undefined;
  #keepAliveMs: number | undefined;
  /** When the request was sent, a piece of the body arrived, or the answer ended. */
  #movedAt = 0;
  #holdsProcess = true;
  #isOld = false;

  /** Opens a connection for a request. */
  constructor(pool: ConnectionPool, exchange: PlainExchange) {
    this.#pool = pool;
    this.#openedAt = pool.now;
    this.#exchange = exchange;
    const socket = pool.open(
      this.#buffer,
      (size) => this.#take(size),
      (error) => {
        if (error === null) this.send(exchange);
        else this.#error = error;
      },
    );
    socket.on("end", () => {
      if (this.#other === undefined) socket.destroy();
      else this.#other.add(null);
    });
    socket.on("error", (broken) => {
      this.#error ??= broken;
    });
    socket.on("close", () => this.#onClose(this.#error));
    this.#socket = socket;
  }

  get isUsable(): boolean {
    return !this.#socket.destroyed;
  }

  /** Sends a request; the answer to the one before has ended. */
  send(exchange: PlainExchange): void {
    const socket = this.#socket;
    this.#exchange = undefined;
    exchange.receiver.onRequestStart(exchange);
    if (exchange.isAborted) {
      this.#pool.onFree(this);
      return;
    }
    exchange.cut = this.#cut;
    this.#exchange = exchange;
    this.#movedAt = this.#pool.now;
    if (!this.#holdsProcess) socket.ref();
    this.#holdsProcess = true;
    socket.write(exchange.text);
  }

  /** Lets the process end until the next request. */
  rest(): void {
    if (this.#holdsProcess) this.#socket.unref();
    this.#holdsProcess = false;
  }

  destroy(error?: Error): void {
    this.#socket.destroy(error);
  }

  /** Ends the connection if it has waited or was kept for too long; the next check is in `nextMs` milliseconds. */
  check({ firstByteMs, idleMs, keepAliveMs, ageMs }: ConnectionTimes, nextMs: number): void {
    if (this.#socket.connecting || this.#other !== undefined) return;
    const { now } = this.#pool;
    const forMs = now - this.#movedAt;
    // A busy connection ends after its answer.
    this.#isOld = ageMs > 0 && now - this.#openedAt > ageMs;
    if (this.#exchange === undefined) {
      if (this.#isOld || forMs + nextMs >= (this.#keepAliveMs ?? keepAliveMs)) this.destroy();
    } else if (this.#left === undefined) {
      if (firstByteMs > 0 && forMs > firstByteMs + nextMs) this.destroy(new errors.HeadersTimeoutError());
    } else if (idleMs > 0 && forMs > idleMs + nextMs) this.destroy(new errors.BodyTimeoutError());
  }

  #take(size: number): void {
    const exchange = this.#exchange;
    if (this.#other !== undefined) this.#other.add(Buffer.from(this.#buffer.subarray(0, size)));
    // Bytes that nobody asked for.
    else if (exchange === undefined) this.destroy();
    else if (this.#left === undefined) this.#takeHead(exchange, size);
    else this.#takeBody(exchange, this.#left, 0, size);
  }

  /** Heads come in one piece nearly always. */
  #takeHead(exchange: PlainExchange, size: number): void {
    const text = this.#buffer.toString("latin1", 0, size);
    const end = text.indexOf(HEAD_END);
    const head = end === -1 ? undefined : readPlainHead(text.slice(0, end + 2));
    if (head === undefined) {
      this.#handOver(exchange, size);
      return;
    }
    const { status, headers, length, keepAliveMs } = head;
    this.#keepAliveMs = keepAliveMs && Math.min(keepAliveMs - AHEAD_MS, MAX_KEEP_ALIVE_MS);
    exchange.receiver.onResponseStart(exchange, status, headers);
    this.#takeBody(exchange, length, end + HEAD_END.length, size);
  }

  #takeBody(exchange: PlainExchange, left: number, from: number, to: number): void {
    const { receiver } = exchange;
    const size = Math.min(left, to - from);
    // Most bodies come with their heads, and need no bytes of their own.
    const isWhole = this.#left === undefined && size === left;
    this.#movedAt = this.#pool.now;
    this.#left = left - size;
    if (isWhole) receiver.onResponseText(exchange, this.#buffer.toString("utf8", from, from + size), size);
    else if (size > 0)
      receiver.onResponseData(exchange, Buffer.from(this.#buffer.subarray(from, from + size)));
    if (size < left || !this.isUsable) return;
    this.#exchange = exchange.cut = this.#left = undefined;
    // More than the answer, the answer to half a request, or the last one.
    const isMore = to - from > size || this.#socket.writableLength > 0;
    if (isMore || this.#isOld || (this.#keepAliveMs ?? 1) <= 0) this.destroy();
    else this.#pool.onFree(this);
    receiver.onResponseEnd();
  }

  /** Gives undici a connection on which its request goes nowhere, because the server has it already. */
  #handOver(exchange: PlainExchange, size: number): void {
    this.#exchange = exchange.cut = undefined;
    this.#other = new SentConnection(this.#cut);
    this.#other.add(Buffer.from(this.#buffer.subarray(0, size)));
    this.#pool.handOver(exchange, this.#other);
  }

  #onClose(error: Error | undefined): void {
    const exchange = this.#exchange;
    const reason = error ?? new errors.SocketError("the connection was closed");
    this.#exchange = undefined;
    this.#pool.onClosed(this);
    // After a regular end, undici still reads what has arrived.
    if (!this.#socket.readableEnded) this.#other?.destroy(reason);
    exchange?.receiver.onResponseError(exchange, reason);
  }
}

/** A request and the receiver of its answer. */
export class PlainExchange implements PieceSource {
  /** Whole request. */
  readonly text: string;
  /** The request in undici's form. */
  readonly options: Dispatcher.DispatchOptions;
  readonly receiver: Receiver;
  /** Ends the connection that has the request. Default: none has it. */
  cut: (() => void) | undefined;
  isAborted = false;

  constructor(text: string, options: Dispatcher.DispatchOptions, receiver: Receiver) {
    this.text = text;
    this.options = options;
    this.receiver = receiver;
  }

  abort(): void {
    this.isAborted = true;
    this.cut?.();
  }

  /** Answers that are collected do not pause. */
  pause(): void {}

  resume(): void {}
}

/**
 * A connection for undici to read an answer whose request was already sent. It drops the bytes that undici writes, and holds the answer
 * back until then, because undici takes bytes in front of a request for a broken connection.
 */
export class SentConnection extends Duplex {
  readonly #onDestroy: () => void;
  #held: (Buffer | null)[] | undefined = [];

  constructor(onDestroy: () => void) {
    super();
    this.#onDestroy = onDestroy;
  }

  /** Gives undici this connection, once, in a later step as it expects. */
  readonly connect: buildConnector.connector = (_where, opened) => {
    queueMicrotask(() => {
      if (this.destroyed) opened(new errors.SocketError("the connection was closed"), null);
      else opened(null, this as never);
    });
  };

  /** Adds a piece of the answer; null is its end. */
  add(piece: Buffer | null): void {
    if (this.#held === undefined) this.push(piece);
    else this.#held.push(piece);
  }

  override _read(): void {}

  override _write(_piece: unknown, _encoding: string, done: () => void): void {
    // The request counts as sent only when undici's own write has returned.
    if (this.#held !== undefined) queueMicrotask(() => this.#release());
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#onDestroy();
    done(error);
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const piece of held) this.push(piece);
  }
}
