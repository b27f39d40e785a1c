import { type InterceptingListener, Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { countStuck, type StuckBytes } from "../../../namespace/figures/stuck-bytes.ts";
import type { ByteBudget, ByteHold } from "../../../namespace/memory/byte-budget.ts";
import {
  type CallMaker,
  type Connection,
  type ConnectionCall,
  callMakerOf,
  countPieces,
  unreadBytesOf,
} from "../../../runtime/internals/grpc-connection.ts";
import { ANSWERS_CROWDED, FREE_ANSWER_BYTES } from "../../resilience/answer-budget.ts";
import type { Gate } from "../../resilience/gate.ts";
import { ResetPace } from "./reset-pace.ts";

const paced = new WeakSet<CallMaker>();

/**
 * Has a connection reset its calls at the pace that peers allow, those that this backend cancels, and those that the library does.
 *
 * @param slots slots of the calls, which they keep while they wait for their reset
 * @param answers memory of messages from their first bytes until they are whole, and of what has arrived ahead of the readers of long answers
 */
export function paceResets(
  connection: Connection,
  { slots, answers }: { readonly slots: Pick<Gate, "hold" | "leave">; readonly answers: ByteBudget },
): Connection {
  const maker = callMakerOf(connection);
  if (paced.has(maker)) return connection;
  paced.add(maker);
  const pace = new ResetPace(slots);
  const unread = countStuck<PacedCall>({
    budget: answers,
    bytesOf: (call) => call.unreadBytes,
    isGone: () => false,
    // The upstream does not know whose calls they are, and the largest end first.
    clientOf: () => "",
    end: (call) => call.cancelWithStatus(status.RESOURCE_EXHAUSTED, ANSWERS_CROWDED),
  });
  const make = maker.createCall.bind(maker);
  maker.createCall = (metadata, host, method, listener, id) =>
    new PacedCall(pace, { answers, unread }, listener, (own) => make(metadata, host, method, own, id));
  return connection;
}

/**
 * A call whose cancellation ends it at the upstream when its reset is allowed, and for its caller at once, or when the connection has
 * taken the request: until then the bytes of the request stay in memory, and the caller has to account for them.
 */
export class PacedCall implements ConnectionCall, InterceptingListener {
  readonly #pace: ResetPace;
  readonly #call: ConnectionCall;
  readonly #hold: ByteHold;
  readonly #unread: StuckBytes<PacedCall>;
  /** Gets the answer; undefined once the call is over or cancelled. */
  #listener: InterceptingListener | undefined;
  /** Ends a cancelled call for its caller. */
  #endForCaller: (() => void) | undefined;
  /** Number of messages that the connection has not taken. */
  #untaken = 0;
  #isAnswered = false;
  #isReset = false;
  /** Number of messages of the answer. */
  #messages = 0;

  constructor(
    pace: ResetPace,
    { answers, unread }: { readonly answers: ByteBudget; readonly unread: StuckBytes<PacedCall> },
    listener: InterceptingListener,
    make: (listener: InterceptingListener) => ConnectionCall,
  ) {
    this.#pace = pace;
    this.#listener = listener;
    this.#hold = answers.open(FREE_ANSWER_BYTES);
    this.#unread = unread;
    this.#call = make(this);
    countPieces(this.#call, (bytes) => this.#hold.take(bytes));
  }

  /** Number of bytes that have arrived and are not read yet. */
  get unreadBytes(): number {
    return unreadBytesOf(this.#call);
  }

  cancelWithStatus(code: status, details: string): void {
    if (this.#listener === undefined) return;
    if (this.#pace.mayReset(!this.#isAnswered)) this.#reset(code, details);
    else this.#resetLater(this.#listener, { code, details, metadata: new Metadata() });
  }

  #resetLater(listener: InterceptingListener, given: StatusObject): void {
    this.#listener = undefined;
    this.#endForCaller = () => listener.onReceiveStatus(given);
    if (this.#untaken === 0) process.nextTick(() => this.#leave());
    this.#pace.resetLater(this);
    // It can end by itself only if its answer is read.
    this.#call.startRead();
  }

  /** Tells the caller of a cancelled call that it is over. */
  #leave(): void {
    const end = this.#endForCaller;
    this.#endForCaller = undefined;
    end?.();
  }

  reset(): void {
    this.#reset(status.CANCELLED, "Cancelled on client");
  }

  #reset(code: status, details: string): void {
    this.#isReset = true;
    this.#call.cancelWithStatus(code, details);
  }

  onReceiveMetadata(metadata: Metadata): void {
    this.#isAnswered = true;
    this.#listener?.onReceiveMetadata(metadata);
  }

  onReceiveMessage(message: Buffer): void {
    this.#hold.release(message.byteLength);
    this.#messages += 1;
    // An answer with a single message is read at once.
    if (this.#messages === 2) this.#unread.add(this);
    if (this.#listener === undefined) this.#call.startRead();
    else this.#listener.onReceiveMessage(message);
  }

  onReceiveStatus(given: StatusObject): void {
    const listener = this.#listener;
    this.#listener = undefined;
    this.#hold.release();
    this.#unread.remove(this);
    if (!this.#isReset) this.#pace.end(this);
    listener?.onReceiveStatus(given);
    this.#leave();
  }

  startRead(): void {
    this.#call.startRead();
  }

  sendMessageWithContext(...[context, message]: Parameters<ConnectionCall["sendMessageWithContext"]>): void {
    if (this.#listener === undefined) return;
    this.#untaken += 1;
    const callback = (error?: Error | null) => {
      this.#untaken -= 1;
      if (this.#untaken === 0) this.#leave();
      context.callback?.(error);
    };
    this.#call.sendMessageWithContext({ ...context, callback }, message);
  }

  /** Ends the request, unless the call is cancelled: the upstream would take a part of a body for the whole. */
  halfClose(): void {
    if (this.#listener !== undefined) this.#call.halfClose();
  }

  getPeer(): string {
    return this.#call.getPeer();
  }

  getCallNumber(): number {
    return this.#call.getCallNumber();
  }

  getDeadlineInfo(): string[] {
    return this.#call.getDeadlineInfo();
  }

  getAuthContext(): ReturnType<ConnectionCall["getAuthContext"]> {
    return this.#call.getAuthContext();
  }
}
