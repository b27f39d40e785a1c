import {
  type experimental,
  type InterceptingListener,
  Metadata,
  type StatusObject,
  status,
} from "@grpc/grpc-js";
import type { Gate } from "../resilience/gate.ts";
import { ResetPace } from "./reset-pace.ts";

/** A connection of a channel, as the library's load balancing policies know it. */
export type Connection = experimental.SubchannelInterface;

/** Maker of the calls of a connection. */
type CallMaker = ReturnType<Connection["getRealSubchannel"]>;

/** A call on a connection. */
export type ConnectionCall = ReturnType<CallMaker["createCall"]>;

const paced = new WeakSet<CallMaker>();

/**
 * Has a connection reset its calls at the pace that peers allow, those that this backend cancels, and those that the library does.
 *
 * @param slots slots of the calls, which they keep while they wait for their reset
 */
export function paceResets(connection: Connection, slots: Pick<Gate, "hold" | "leave">): Connection {
  // The library compares these by identity, so that nothing can take their place.
  const maker = connection.getRealSubchannel();
  if (paced.has(maker)) return connection;
  paced.add(maker);
  const pace = new ResetPace(slots);
  const make = maker.createCall.bind(maker);
  maker.createCall = (metadata, host, method, listener, id) =>
    new PacedCall(pace, listener, (own) => make(metadata, host, method, own, id));
  return connection;
}

/**
 * A call whose cancellation ends it at the upstream when its reset is allowed, and for its caller at once, or when the connection has
 * taken the request: until then the bytes of the request stay in memory, and the caller has to account for them.
 */
export class PacedCall implements ConnectionCall, InterceptingListener {
  readonly #pace: ResetPace;
  readonly #call: ConnectionCall;
  /** Gets the answer; undefined once the call is over or cancelled. */
  #listener: InterceptingListener | undefined;
  /** Ends a cancelled call for its caller. */
  #endForCaller: (() => void) | undefined;
  /** Number of messages that the connection has not taken. */
  #untaken = 0;
  #isAnswered = false;
  #isReset = false;

  constructor(
    pace: ResetPace,
    listener: InterceptingListener,
    make: (listener: InterceptingListener) => ConnectionCall,
  ) {
    this.#pace = pace;
    this.#listener = listener;
    this.#call = make(this);
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
    if (this.#listener === undefined) this.#call.startRead();
    else this.#listener.onReceiveMessage(message);
  }

  onReceiveStatus(given: StatusObject): void {
    const listener = this.#listener;
    this.#listener = undefined;
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
