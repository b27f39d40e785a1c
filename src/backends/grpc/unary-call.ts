import { constants } from "node:http2";
import { createGunzip, createInflate } from "node:zlib";
import type { Message } from "@bufbuild/protobuf";
import { type InterceptingListener, type Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { LanceError } from "../../namespace/errors.ts";
import type { ByteBudget, ByteHold } from "../../namespace/memory/byte-budget.ts";
import {
  type Connection,
  type ConnectionCall,
  callMakerOf,
} from "../../runtime/internals/grpc-connection.ts";
import { FREE_ANSWER_BYTES } from "../resilience/answer-budget.ts";
import type { PendingAnswer, Running } from "./answer.ts";
import { statusError, unreached } from "./errors.ts";

/** A call of a method with a single message each way. */
export interface UnaryCall {
  readonly path: string;
  readonly request: Message;
  readonly metadata: Metadata;
  /** Time at which the call has to end, in epoch milliseconds. Default: as long as its client waits. */
  readonly deadline: number | undefined;
  readonly write: (request: Message) => Uint8Array;
  /** Reads the answer; throws for bytes that it cannot read. */
  readonly read: (answer: Buffer) => Message;
}

/** Where unary calls go. */
export interface UnaryTarget {
  readonly authority: string;
  /** Largest message of an answer, in bytes. */
  readonly maxMessageBytes: number;
  /** Memory of messages that are being unpacked. */
  readonly answers: ByteBudget;
  /** Returns the connection for the next call; undefined if none is ready. */
  pick(): Connection | undefined;
  /**
   * Waits until a connection is ready.
   *
   * @throws LanceError ServiceUnavailable, if none is ready in time.
   */
  connected(): unknown;
}

/** Status of a call, with the code of the reset that has ended it. */
interface StatusObjectWithRstCode extends StatusObject {
  readonly rstCode?: number;
}

/** The longest delay of a timer, in milliseconds: about 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Words of the library's client for failures of its own, by which they are recognised. */
const UNWRITABLE = "Request message serialization failure";
const UNREADABLE = "Response message parsing error";
const TOO_LARGE = "Received message larger than max";
const TOO_MANY = "Too many responses received";
const NO_MESSAGE = "No message received";

/**
 * Starts a call on a connection of the library. Its client and its channel would pass the call through seven layers and
 * each message through a dozen promises.
 */
export function startUnary(target: UnaryTarget, call: UnaryCall, answer: PendingAnswer): Running {
  const exchange = new UnaryExchange(target, call, answer);
  exchange.start();
  return exchange;
}

/** A call, which receives the parts of its answer. */
class UnaryExchange implements InterceptingListener, Running {
  readonly #target: UnaryTarget;
  /** The call and its answer; undefined once the call is over, because the library keeps this object for longer. */
  #open: { readonly call: UnaryCall; readonly answer: PendingAnswer } | undefined;
  #running: ConnectionCall | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #encoding = "identity";
  #received = false;
  #message: Message | undefined;
  /** Whether the message is being unpacked, and the status that has come meanwhile. */
  #unpacking = false;
  #status: StatusObject | undefined;
  #wasRefused = false;
  #isBroken = false;

  constructor(target: UnaryTarget, call: UnaryCall, answer: PendingAnswer) {
    this.#target = target;
    this.#open = { call, answer };
  }

  start(): void {
    const connection = this.#target.pick();
    // The connection was lost, or closed as idle, while the call waited for its turn.
    if (connection === undefined) void this.#startConnected();
    else this.#startOn(connection);
  }

  /** Starts the call once a connection is ready. */
  async #startConnected(): Promise<void> {
    try {
      await this.#target.connected();
      const connection = this.#target.pick();
      if (connection === undefined) throw new Error("no connection is ready");
      this.#startOn(connection);
    } catch (error) {
      this.#fail(unreached(error));
    }
  }

  #startOn(connection: Connection): void {
    if (this.#open === undefined) return;
    const { path, request, metadata, deadline, write } = this.#open.call;
    const { authority } = this.#target;
    const leftMs = deadline === undefined ? undefined : Math.max(0, deadline - Date.now());
    if (leftMs !== undefined) metadata.set("grpc-timeout", timeoutHeader(leftMs));
    metadata.set("grpc-accept-encoding", ACCEPTED_ENCODINGS);
    metadata.set("accept-encoding", "identity");
    const running = callMakerOf(connection).createCall(metadata, authority, path, this);
    this.#running = running;
    if (leftMs !== undefined) this.#expireIn(leftMs);
    running.startRead();
    try {
      running.sendMessageWithContext({}, frameOf(write(request)));
      running.halfClose();
    } catch (error) {
      this.#break(status.INTERNAL, `${UNWRITABLE}: ${error}`);
    }
  }

  cancel(): void {
    this.#break(status.CANCELLED, "Cancelled on client");
  }

  onReceiveMetadata(metadata: Metadata): void {
    if (this.#open !== undefined) this.#open.answer.begun = true;
    const [encoding] = metadata.get("grpc-encoding");
    if (encoding !== undefined) this.#encoding = String(encoding);
  }

  onReceiveMessage(frame: Buffer): void {
    const isSecond = this.#received;
    this.#received = true;
    // A second message would otherwise hold the status back.
    this.#running?.startRead();
    if (isSecond) this.#break(status.UNIMPLEMENTED, TOO_MANY);
    else if (isPacked(frame)) void this.#unpack(messageIn(frame));
    else this.#take(messageIn(frame));
  }

  onReceiveStatus(given: StatusObjectWithRstCode): void {
    const { code, details, metadata, rstCode } = given;
    if (this.#open === undefined) return;
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM && this.#mayRepeat()) void this.#repeat();
    else if (code !== status.OK) this.#fail(statusError(code, details, metadata));
    else if (this.#unpacking) this.#status = given;
    else if (this.#message === undefined) this.#fail(statusError(status.UNIMPLEMENTED, NO_MESSAGE));
    else {
      const message = this.#message;
      this.#close()?.done(message);
    }
  }

  #take(message: Buffer): void {
    try {
      this.#message = this.#open?.call.read(message);
    } catch (error) {
      this.#break(status.INTERNAL, `${UNREADABLE}: ${error}`);
    }
  }

  async #unpack(message: Buffer): Promise<void> {
    this.#unpacking = true;
    const hold = this.#target.answers.open(FREE_ANSWER_BYTES);
    try {
      this.#take(await unpack(message, this.#encoding, this.#target.maxMessageBytes, hold));
    } catch (error) {
      if (error instanceof RangeError) this.#break(status.RESOURCE_EXHAUSTED, TOO_LARGE);
      else if (error instanceof LanceError) this.#break(status.RESOURCE_EXHAUSTED, error.message);
      else this.#break(status.INTERNAL, `${UNREADABLE}: ${error}`);
    } finally {
      hold.release();
    }
    this.#unpacking = false;
    if (this.#status !== undefined) this.onReceiveStatus(this.#status);
  }

  /** Like the library, it repeats a refused call once, and only if no part of an answer has come and nothing has ended it here. */
  #mayRepeat(): boolean {
    return !this.#wasRefused && !this.#isBroken && this.#open?.answer.begun === false;
  }

  /** Makes the call again, which the upstream has refused before it looked at it. */
  #repeat(): Promise<void> {
    this.#wasRefused = true;
    this.#running = undefined;
    clearTimeout(this.#deadline);
    return this.#startConnected();
  }

  #expireIn(milliseconds: number): void {
    if (milliseconds > LONGEST_TIMER_MS) return;
    const expire = () => this.#break(status.DEADLINE_EXCEEDED, "Deadline exceeded");
    this.#deadline = setTimeout(expire, milliseconds);
  }

  /** Ends the call at the upstream, whose status then ends it here, unless that has come. */
  #break(code: status, details: string): void {
    this.#isBroken = true;
    if (this.#running === undefined || this.#status !== undefined) this.#fail(statusError(code, details));
    else this.#running.cancelWithStatus(code, details);
  }

  #fail(error: Error): void {
    this.#close()?.fail(error);
  }

  /** Lets go of the call; returns its answer if it was still open. */
  #close(): PendingAnswer | undefined {
    const answer = this.#open?.answer;
    clearTimeout(this.#deadline);
    this.#open = this.#running = this.#deadline = this.#message = undefined;
    return answer;
  }
}

/** Encodings of answers that an upstream may use. */
const ACCEPTED_ENCODINGS = "identity,deflate,gzip";

const HEAD_BYTES = 5;

/** Returns a message with its prefix, in a single buffer. */
function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEAD_BYTES);
  return frame;
}

/** Whether the message of a frame is packed. */
function isPacked(frame: Buffer): boolean {
  return frame[0] === 1;
}

/** Returns the message of a frame, as it was sent. */
function messageIn(frame: Buffer): Buffer {
  return frame.subarray(HEAD_BYTES);
}

const UNPACKERS = { gzip: createGunzip, deflate: createInflate };

/**
 * Unpacks a message, whose bytes the hold takes.
 *
 * @throws RangeError, if it is larger than `maxBytes`; the errors of the hold; Error, for any other reason.
 */
async function unpack(
  message: Buffer,
  encoding: string,
  maxBytes: number,
  hold: Pick<ByteHold, "take">,
): Promise<Buffer> {
  if (!Object.hasOwn(UNPACKERS, encoding)) throw new Error(`the encoding ${encoding} is not known`);
  const unpacker = UNPACKERS[encoding as keyof typeof UNPACKERS]();
  const pieces: Buffer[] = [];
  let bytes = 0;
  unpacker.end(message);
  for await (const piece of unpacker as AsyncIterable<Buffer>) {
    bytes += piece.byteLength;
    if (bytes > maxBytes) throw new RangeError(`the message has more than ${maxBytes} bytes`);
    hold.take(piece.byteLength);
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
}

/** Units of `grpc-timeout` with their milliseconds, the finest first. */
const UNITS = [
  ["m", 1],
  ["S", 1_000],
  ["M", 60_000],
  ["H", 3_600_000],
] as const;
/** A timeout has at most eight digits. */
const TOO_LONG = 1e8;

/** Returns the header `grpc-timeout` for a number of milliseconds, in the finest unit whose digits suffice. */
export function timeoutHeader(milliseconds: number): string {
  const [unit, factor] = UNITS.find(([, factor]) => milliseconds / factor < TOO_LONG) ?? UNITS[3];
  return `${Math.ceil(milliseconds / factor)}${unit}`;
}
