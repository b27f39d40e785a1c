import { isMarkedAsUntransferable } from "node:worker_threads";
import type { Dispatcher } from "undici";
import { LanceError } from "../../../namespace/errors.ts";
import { WORTH_FREEING_BYTES } from "../../../runtime/byte-memory.ts";
import { errors } from "../../../runtime/internals/undici.ts";
import {
  type FailureKind,
  UpstreamFailure,
  type UpstreamRequest,
  type UpstreamResponse,
} from "../transport/transport.ts";
import { PieceQueue, type PieceSource } from "./piece-queue.ts";

/** Events and bounds of an exchange. */
export interface ReceiverOptions {
  /** Largest body that is collected, in bytes. */
  readonly maxAnswerBytes: number;
  /** Time that is left for the exchange, in milliseconds; undefined for no limit. */
  readonly leftMs: number | undefined;
  /** Limit on a collected body, from the head of the answer on, in milliseconds; 0 for no limit. */
  readonly collectMs: number;
  /** Called once, when the exchange is over. */
  onOver(): void;
  resolve(response: UpstreamResponse): void;
  reject(reason: unknown): void;
}

const EMPTY = Buffer.alloc(0);

/** Maximum number of informational heads before an answer; each restarts the time for the next one. */
const MAX_EARLY_HEADS = 8;

/** Receives the answer to a request, and ends the exchange when its caller does or its time is over. */
export class Receiver implements Dispatcher.DispatchHandler {
  readonly #request: UpstreamRequest;
  readonly #options: ReceiverOptions;
  #controller: Pick<PieceSource, "abort"> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #collecting: NodeJS.Timeout | undefined;
  #headAt = 0;
  #earlyHeads = 0;
  #status = 0;
  #headers: UpstreamResponse["headers"] = {};
  #first: Buffer = EMPTY;
  /** The body, once it has several pieces. */
  #collected: CollectedBody | undefined;
  #text: string | undefined;
  #size = 0;
  #queue: PieceQueue | undefined;
  #ended = false;
  /** Reason why this side ended the exchange. */
  #reason: unknown;
  // A function, not the receiver itself: node makes a closure for listeners that are objects, through which, as
  // measured, dead receivers kept later ones alive.
  readonly #onAbort = () => this.#cut(this.#request.signal.reason);

  constructor(request: UpstreamRequest, options: ReceiverOptions) {
    this.#request = request;
    this.#options = options;
    request.signal.addEventListener("abort", this.#onAbort);
    if (options.leftMs !== undefined) {
      this.#timer = setTimeout(() => this.#expire(), Math.max(0, options.leftMs));
    }
  }

  /** Whether the exchange has ended, for its caller. */
  get isOver(): boolean {
    return this.#ended;
  }

  /** Called again if another reader takes the answer over. */
  onRequestStart(controller: Pick<PieceSource, "abort">): void {
    const isSent = this.#controller !== undefined;
    this.#controller = controller;
    if (this.#ended) controller.abort(asError(this.#reason));
    else if (!isSent) this.#request.onSent?.();
  }

  onResponseStart(controller: PieceSource, status: number, headers: UpstreamResponse["headers"]): void {
    // Only the last head counts; earlier ones announce it.
    if (status < 200) {
      this.#earlyHeads += 1;
      if (this.#earlyHeads > MAX_EARLY_HEADS) this.#cut(failureOfKind("malformed"));
      return;
    }
    this.#status = status;
    this.#headers = headers;
    if (!this.#request.streams || status >= 300) {
      this.#headAt = Date.now();
      return;
    }
    const reclaim = createReclaimer();
    this.#queue = new PieceQueue(controller, {
      onLeave: () => this.#release(),
      onDone: (piece) => {
        if (this.#request.releasesPieces?.()) reclaim(piece);
      },
    });
    this.#options.resolve({ status, headers, body: EMPTY, pieces: this.#queue });
  }

  /** Receives the whole body of an answer that is collected. */
  onResponseText(_controller: PieceSource, text: string, bytes: number): void {
    if (this.#takes(bytes)) this.#text = text;
  }

  onResponseData(_controller: PieceSource, piece: Buffer): void {
    if (this.#queue !== undefined) {
      this.#queue.push(piece);
      return;
    }
    if (!this.#takes(piece.byteLength)) return;
    if (this.#first === EMPTY) {
      this.#first = piece;
      return;
    }
    if (this.#collected === undefined) {
      this.#collected = new CollectedBody(this.#announcedBytes());
      this.#collected.add(this.#first);
      this.#limitCollecting();
    }
    this.#collected.add(piece);
  }

  #announcedBytes(): number {
    const length = Number(this.#headers["content-length"]);
    return length <= this.#options.maxAnswerBytes ? length : 0;
  }

  /** Adds to the size of a collected body, and ends the exchange if it becomes too large, alone or with all others. */
  #takes(bytes: number): boolean {
    if (this.#ended) return false;
    const { maxAnswerBytes } = this.#options;
    const size = this.#size + bytes;
    if (size > maxAnswerBytes) {
      this.#cut(new UpstreamFailure("oversized", `the answer is larger than ${maxAnswerBytes} bytes`));
      return false;
    }
    try {
      this.#request.hold?.take(bytes);
    } catch (refusal) {
      this.#cut(refusal);
      return false;
    }
    this.#size = size;
    return true;
  }

  /**
   * Limits the time of a body of several pieces: undici bounds the time between two of them, but not their number. Most
   * bodies are a single piece, and need no timer.
   */
  #limitCollecting(): void {
    const { collectMs } = this.#options;
    if (collectMs === 0) return;
    const leftMs = Math.max(0, collectMs - (Date.now() - this.#headAt));
    this.#collecting = setTimeout(() => this.#cut(failureOfKind("idle")), leftMs);
  }

  onResponseEnd(): void {
    if (this.#ended) return;
    this.#release();
    if (this.#queue !== undefined) {
      this.#queue.end();
      return;
    }
    const body = this.#text ?? this.#collected?.bytes ?? this.#first;
    this.#options.resolve({ status: this.#status, headers: this.#headers, body, pieces: undefined });
  }

  onResponseError(_controller: PieceSource, error: Error): void {
    if (this.#ended) return;
    this.#fail(failureOf(error, { sent: this.#controller !== undefined, begun: this.#status > 0 }));
  }

  #expire(): void {
    this.#cut(failureOfKind("total"));
  }

  #cut(reason: unknown): void {
    if (this.#ended) return;
    this.#reason = reason;
    this.#fail(reason);
    this.#controller?.abort(asError(reason));
  }

  #fail(reason: unknown): void {
    this.#release();
    if (this.#size > 0) this.#request.hold?.release(this.#size);
    if (this.#queue !== undefined) this.#queue.fail(reason);
    else this.#options.reject(reason);
  }

  #release(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#collecting);
    this.#request.signal.removeEventListener("abort", this.#onAbort);
    this.#options.onOver();
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("the request was ended", { cause: reason });
}

/**
 * Frees the memory that a socket was read into, behind the reader of a body: each call reports that a piece, and all
 * pieces before it, are no longer in use. The collector would free it only when there are 64 MiB of it.
 *
 * Pieces of a read share its memory, and undici uses it until it has passed all of them on. undici is done with it
 * when a piece of the next read arrives. The connection must serve a single answer at a time.
 */
export function createReclaimer(): (piece: Uint8Array) => void {
  let last: ArrayBufferLike | undefined;
  return ({ buffer }) => {
    if (last !== undefined && last !== buffer) free(last);
    last = buffer;
  };
}

function free(memory: ArrayBufferLike): void {
  // An empty piece is in a buffer that all connections share, a small piece may be in Node's pool.
  if (memory.byteLength < WORTH_FREEING_BYTES || isMarkedAsUntransferable(memory)) return;
  if (memory instanceof ArrayBuffer) memory.transfer(0);
}

/** A body of several pieces, which become one as they arrive: joining 60 MB at the end would hold the event loop for 30 ms. */
export class CollectedBody {
  #memory: Buffer;
  #size = 0;

  /** @param expected size of the body in bytes, if its sender has announced it; else 0. */
  constructor(expected: number) {
    this.#memory = Buffer.allocUnsafeSlow(expected);
  }

  add(piece: Uint8Array): void {
    const size = this.#size + piece.byteLength;
    if (size > this.#memory.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.#memory.byteLength));
      this.#memory.copy(larger, 0, 0, this.#size);
      this.#memory = larger;
    }
    this.#memory.set(piece, this.#size);
    this.#size = size;
  }

  /** The bytes that have arrived. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#size);
  }
}

/** How far a request came before it failed. */
interface Progress {
  /** Whether it had a connection. */
  readonly sent: boolean;
  /** Whether the answer had started. */
  readonly begun: boolean;
}

const KINDS: Readonly<Record<string, FailureKind>> = {
  UND_ERR_CONNECT_TIMEOUT: "connect",
  UND_ERR_HEADERS_TIMEOUT: "first-byte",
  UND_ERR_BODY_TIMEOUT: "idle",
  UND_ERR_HEADERS_OVERFLOW: "malformed",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "truncated",
};

const TEXTS: Readonly<Record<FailureKind, string>> = {
  connect: "the upstream catalog cannot be reached",
  reset: "the upstream catalog closed the connection before it answered",
  truncated: "the answer of the upstream catalog broke off",
  "first-byte": "the upstream catalog did not answer in time",
  idle: "the upstream catalog stopped in the middle of its answer",
  total: "the upstream catalog did not answer in time",
  malformed: "the answer of the upstream catalog is no HTTP",
  oversized: "the answer of the upstream catalog is too large",
};

/**
 * Returns the failure for an error of the connection; errors of the gateway's own side pass unchanged.
 *
 * Its message, which clients may see, contains no addresses; the cause does.
 */
function failureOf(error: Error, { sent, begun }: Progress): unknown {
  if (error instanceof LanceError || error instanceof UpstreamFailure) return error;
  const { code = "" } = error as { code?: unknown };
  return failureOfKind(KINDS[String(code)] ?? kindByProgress(error, sent, begun), error);
}

/** Returns the failure of a kind, with a text for clients. */
function failureOfKind(kind: FailureKind, cause?: Error): UpstreamFailure {
  return new UpstreamFailure(kind, TEXTS[kind], cause);
}

function kindByProgress(error: Error, sent: boolean, begun: boolean): FailureKind {
  if (!sent) return "connect";
  if (error instanceof errors.HTTPParserError) return "malformed";
  return begun ? "truncated" : "reset";
}
