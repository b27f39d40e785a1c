import { type InterceptingListener, Metadata, type StatusObject, status } from "@grpc/grpc-js";
import type { ByteBudget, ByteHold } from "../../../namespace/memory/byte-budget.ts";
import { countStuck, type StuckBytes } from "../../../namespace/memory/stuck-bytes.ts";
import { monotonicNow } from "../../../runtime/clocks.ts";
import {
  type CallMaker,
  type Connection,
  type ConnectionCall,
  callMakerOf,
  countPieces,
  unreadBytesOf,
} from "../../../runtime/internals/grpc-connection.ts";
import { ANSWERS_CROWDED, FREE_ANSWER_BYTES } from "../../resilience/answer-budget.ts";
import { Budget } from "../../resilience/attempts.ts";
import type { Gate } from "../../resilience/gate.ts";

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

/** Number of resets at once, and in each second: less than Node (1,000 and 33) and this gateway (100 and 33) allow at worst. */
const AT_ONCE = 100;
const PER_SECOND = 30;

/** Early resets that each call earns that ends by itself: Envoy closes a connection on which they are half of the calls. */
const EARLY_SHARE = 0.5;

/** Age of an unanswered call, in milliseconds, below which Envoy counts its reset as early. */
const EARLY_MS = 2_000;

/** Pause until the next attempt to reset calls that wait, in milliseconds. */
const PAUSE_MS = 100;

/** A cancelled call that waits for its reset. */
interface CancelledCall {
  reset(): void;
}

/** Decides when calls may be reset on a connection, which the peer closes if there are too many (docs/adr/0022). */
export class ResetPace {
  readonly #slots: Pick<Gate, "hold" | "leave">;
  readonly #all = new Budget(0, { perSecond: PER_SECOND, first: AT_ONCE });
  readonly #early = new Budget(EARLY_SHARE, { perSecond: 0, first: AT_ONCE });
  /** Times since which calls wait, the longest first. */
  readonly #waiting = new Map<CancelledCall, number>();
  #timer: NodeJS.Timeout | undefined;

  /** @param slots slots of the calls, which they keep while they wait */
  constructor(slots: Pick<Gate, "hold" | "leave">) {
    this.#slots = slots;
  }

  /**
   * Whether a call may be reset now, which counts as a reset.
   *
   * @param isEarly whether its answer has not started
   */
  mayReset(isEarly: boolean): boolean {
    return (!isEarly || this.#early.take()) && this.#all.take();
  }

  /** Resets a call as soon as that is allowed, unless it {@link end}s before. */
  resetLater(call: CancelledCall): void {
    this.#slots.hold();
    this.#waiting.set(call, monotonicNow());
    this.#timer ??= setTimeout(this.#resetDue, EARLY_MS).unref();
  }

  /** Notes that a call has ended by itself. */
  end(call: CancelledCall): void {
    this.#early.earn();
    this.#forget(call);
  }

  readonly #resetDue = (): void => {
    const due = monotonicNow() - EARLY_MS;
    for (const [call, since] of this.#waiting) {
      if (since > due || !this.#all.take()) break;
      this.#forget(call);
      call.reset();
    }
    const [oldest] = this.#waiting.values();
    this.#timer =
      oldest === undefined ? undefined : setTimeout(this.#resetDue, Math.max(PAUSE_MS, oldest - due)).unref();
  };

  #forget(call: CancelledCall): void {
    if (this.#waiting.delete(call)) this.#slots.leave();
  }
}
