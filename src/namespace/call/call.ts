import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { type Ending, type LateSignal, signalOf } from "../../runtime/late-signal.ts";
import { type ErrorName, LanceError } from "../errors.ts";
import type { UpstreamDecision } from "../figures.ts";
import type { Identifier } from "../identifier.ts";
import type { PassedBodies } from "../messages/passed-answer.ts";
import type { Action, Principal } from "./principal.ts";
import type { Reception } from "./reception.ts";

/** Protocols by which a call may arrive. */
export type Protocol = "grpc" | "grpc-web" | "connect" | "rest" | "mcp" | "flight";

/** Parts of the address to which a request was sent. Only the server sets them; no header replaces them. */
export interface RequestAddress {
  /** Host, with or without a port. */
  readonly host: string | undefined;
  /** Database that the path names. */
  readonly database: string | undefined;
}

/** Certificate that a client has shown when it connected, and whose key it has proved to hold. */
export interface ClientCertificate {
  /** Reason why the gateway does not trust it. Default: an authority that the operator has named has signed it. */
  readonly fault?: string | undefined;
  /** Name of the client that the certificate states. Default: it states none. */
  readonly name?: string | undefined;
  /** SHA-256 of the certificate, in hexadecimal digits. */
  readonly fingerprint: string;
  /** Time after which it proves nothing, in epoch milliseconds. */
  readonly expires: number;
}

/** Facts that a wire knows about a call, in addition to its messages. */
export interface CallInit {
  readonly method: DescMethod;
  readonly protocol: Protocol;
  /** The client's `x-request-id`, or a generated one. It appears in the log, in errors and in the answer. */
  readonly requestId: string;
  /**
   * Request headers (metadata in gRPC) by lower-case name; ", " joins several values. The object belongs to this call
   * and has no prototype: the pipeline adds the `header.*` entries of the request's context.
   */
  readonly headers: Record<string, string>;
  /** Default: the address does not matter. */
  readonly address?: RequestAddress | undefined;
  /** Network address from which the connection comes. Default: it is not known. */
  readonly peer?: string | undefined;
  /** Certificate of the connection's client. Default: the client has shown none. */
  readonly certificate?: ClientCertificate | undefined;
  /** Aborts when the client disconnects or cancels, or when the deadline expires. */
  readonly signal: AbortSignal | LateSignal;
  /** Time at which the client stops waiting, in epoch milliseconds. */
  readonly deadline: number | undefined;
  /** Media type that the client accepts for a body other than JSON; undefined leaves the choice to the wire. */
  readonly accept: string | undefined;
  readonly log: Logger;
  /**
   * Whether the chunks of the call's body belong to the call alone, so that a reader that has copied a chunk may free
   * its memory. Callers of an operation with any other body set false. Default: false.
   */
  readonly ownsBody?: boolean;
  /**
   * Whether the wire can tell a complete body from an interrupted one: by its length, or by the chunked coding of
   * HTTP/1.1. Elsewhere a client that disconnects may look like one that has finished, and the body must mark its own
   * end. Default: false.
   */
  readonly hasKnownEnd?: boolean;
  /**
   * Whether the wire, when it asks for the third chunk of the result or a later one, is done with the chunks before,
   * so that their memory can be freed. Default: false.
   */
  readonly releasesChunks?: boolean;
  /**
   * Ends the call at once, in a way that its client cannot mistake for the end of the answer. It serves against calls
   * that hold resources without using them. Default: the call cannot be cut off.
   */
  readonly cutOff?: (error: LanceError) => void;
}

/** Context of a call: what the wire knows, and what the pipeline has determined. */
export interface Call extends CallInit {
  /** Object of the call, parsed once; empty for the root and for routes without an id. */
  id: Identifier;
  /** Aborts when the call has to end; a call that must not end with its client has a signal of its own. */
  signal: AbortSignal;
  /** Time at which the call has to end, in epoch milliseconds; no later than that of its client. */
  deadline: number | undefined;
  /** Name of the call's database, if there are several. */
  database: string | undefined;
  /** Whether every step of the pipeline has let the call through to its backend. Default: not yet. */
  admitted?: boolean;
  /** How the call ended: success, or a row of the error table. Default: it has not ended. */
  outcome?: "OK" | ErrorName | undefined;
  /** Whether the pipeline has the call, and logs and counts it; the wire reports failures before that. */
  begun?: boolean;
  /**
   * Form in which the wire can send an answer as an upstream wrote it. A step that needs the message of the answer
   * deletes it. Default: the wire takes messages only.
   */
  takes?: keyof PassedBodies | undefined;
  /** The request's context as the client sent it. */
  context?: Readonly<Record<string, string>> | undefined;
  /** Credentials of the caller, without those that were meant for the gateway. */
  identity: Credentials;
  /** Credentials as the caller brought them. Default: the gateway has checked none, and `identity` has all. */
  brought?: Credentials | undefined;
  /** The caller as known before the message was read. Default: unknown. */
  reception?: Reception | undefined;
  /** The caller, as far as it has proved who it is. Default: the gateway asks nobody. */
  principal?: Principal | undefined;
  /** API key that the call creates or revokes, for the audit log. Default: none. */
  changedKey?: ChangedKey | undefined;
  /**
   * Checks the query of the view that the call creates, with the rights of the caller, and returns the columns of its result: one encapsulated
   * IPC message, a schema. Default: nothing can check it.
   *
   * @throws LanceError of a query that is wrong or not allowed, and of its tables
   */
  planView?: (() => Promise<Uint8Array>) | undefined;
  /** Key of the caller to whom a ticket belongs that the call presents; any other is refused. Default: the call presents none. */
  heldBy?: string | undefined;
  /**
   * Whether the caller may do every operation of a kind to the object of the call; where policies decide, the answer for a call on several
   * tables is no. Default: nothing decides about callers.
   */
  may?: ((action: Action) => boolean | Promise<boolean>) | undefined;
  /**
   * Names of the objects below the object of the call that its caller may remove, relative to that object. Default: all;
   * nothing decides about callers.
   */
  removable?: ReadonlySet<string> | undefined;
  /**
   * Takes memory for the call's body beyond the received bytes, in bytes, until it is released.
   *
   * @throws LanceError Throttling
   */
  holdBody: (bytes: number) => void;
  /** Reports how many bytes of the call's body are no longer held; the end of the call releases the rest. */
  releaseBody: (bytes: number) => void;
  /** Headers of the answer by lower-case name; they are also returned in the response's `context`. */
  readonly responseHeaders: Record<string, string>;
  /**
   * Headers of an upstream's answer that belong to its connection or message, by lower-case name. They are returned in the
   * response's `context` alone. Default: none.
   */
  messageHeaders?: Readonly<Record<string, string>> | undefined;
  /** Size of a download in bytes, if it is known before it begins; the wire announces it. Default: it is not known. */
  responseBytes?: number;
  /** Trailers of the answer by lower-case name, for protocols that have them. Default: none. */
  responseTrailers?: Record<string, string>;
  /** Exchange between the backend and a cache in front of it. Default: no cache. */
  readonly validation?: Validation;
  /** Decisions on the way to an upstream, in order. */
  readonly decisions: readonly UpstreamDecision[];
  /**
   * Adds a decision, for the log and for metrics. A copy of the call, with a signal of its own, adds to the same
   * list.
   */
  note(decision: UpstreamDecision): void;
}

/** Facts about an API key that a call creates or revokes; none of them proves an identity. */
export interface ChangedKey {
  /** Public part of the key. Default: the key has not been drawn. */
  readonly id?: string;
  readonly name: string;
  readonly role: string;
  readonly groups?: readonly string[];
  readonly scope?: readonly string[];
  /** When the gateway begins to refuse it. Default: never. */
  readonly expires?: string;
}

/** How a cached answer is revalidated, and how long it may be cached; the rules are those of RFC 9111. */
export interface Validation {
  /** Entity tag of the cached answer; a backend that can asks its upstream whether it is still valid. */
  readonly known?: string | undefined;
  /** Set by the backend: the cached answer is valid, and the answer that came with this is empty. */
  holds?: boolean;
  /** Set by the backend: entity tag of the answer. */
  etag?: string | undefined;
  /** Set by the backend: the answer's `cache-control`. */
  cacheControl?: string | undefined;
}

/** Credentials of a request, as sent. */
export interface Credentials {
  /** Value of `x-api-key`. */
  readonly apiKey: string | undefined;
  /** Token of `Authorization: Bearer …`, without the scheme. */
  readonly authToken: string | undefined;
}

/**
 * Key under which a log line carries its call, whose secrets the line must not contain; the key itself is not
 * written.
 */
export const OF_CALL: unique symbol = Symbol("call");

/** Creates a call; the pipeline fills in the rest. */
export function createCall(init: CallInit): Call {
  return new NewCall(init);
}

/** Returns a call with other values in some places; a spread would lose the signal. */
export function copyCall<C extends Partial<Call>>(call: Call, changes: C): Call & C {
  return { ...call, signal: call.signal, ...changes };
}

/** Returns what tells a call that it has to end. It costs less than the call's signal, which is made when it is first read. */
export function endingOf(call: Pick<Call, "signal">): Ending {
  return NewCall.endingOf(call);
}

/** Returns the error with which a call was ended; undefined if it was not, or without one. */
export function endErrorOf(call: Pick<Call, "signal">): LanceError | undefined {
  const { aborted, reason } = endingOf(call);
  return aborted && reason instanceof LanceError ? reason : undefined;
}

/** Makes the signal of a call a property of its own, which survives a spread. */
export function keepSignal(call: Call): void {
  NewCall.keepSignal(call);
}

/** A class, whose objects have the place for all their fields at once: copied from another object, they cost several times more. */
class NewCall implements Call {
  readonly method: DescMethod;
  readonly protocol: Protocol;
  readonly requestId: string;
  readonly headers: Record<string, string>;
  readonly address: RequestAddress | undefined;
  readonly peer: string | undefined;
  readonly certificate: ClientCertificate | undefined;
  #signal: AbortSignal | LateSignal | undefined;
  deadline: number | undefined;
  readonly accept: string | undefined;
  readonly log: Logger;
  readonly ownsBody: boolean;
  readonly hasKnownEnd: boolean;
  readonly releasesChunks: boolean;
  readonly cutOff?: (error: LanceError) => void;
  id: Identifier = [];
  database: string | undefined = undefined;
  begun = false;
  outcome: "OK" | ErrorName | undefined = undefined;
  admitted = false;
  takes: keyof PassedBodies | undefined = undefined;
  reception: Reception | undefined = undefined;
  principal: Principal | undefined = undefined;
  heldBy: string | undefined = undefined;
  context: Readonly<Record<string, string>> | undefined = undefined;
  identity: Credentials = NO_CREDENTIALS;
  holdBody = ignoreBytes;
  releaseBody = ignoreBytes;
  readonly responseHeaders: Record<string, string> = {};
  readonly decisions: UpstreamDecision[] = [];
  readonly note = noteDecision;

  constructor(init: CallInit) {
    this.method = init.method;
    this.protocol = init.protocol;
    this.requestId = init.requestId;
    this.headers = init.headers;
    this.address = init.address;
    this.peer = init.peer;
    this.certificate = init.certificate;
    this.#signal = init.signal;
    this.deadline = init.deadline;
    this.accept = init.accept;
    this.log = init.log;
    this.ownsBody = init.ownsBody ?? false;
    this.hasKnownEnd = init.hasKnownEnd ?? false;
    this.releasesChunks = init.releasesChunks ?? false;
    if (init.cutOff !== undefined) this.cutOff = init.cutOff;
  }

  static endingOf(call: Pick<Call, "signal">): Ending {
    return #signal in call ? (call.#signal ?? call.signal) : call.signal;
  }

  static keepSignal(call: Call): void {
    if (!(#signal in call)) return;
    const value = call.signal;
    call.#signal = undefined;
    Object.defineProperty(call, "signal", { value, writable: true, enumerable: true, configurable: true });
  }

  get signal(): AbortSignal {
    return signalOf(this.#signal as AbortSignal | LateSignal);
  }

  set signal(signal: AbortSignal) {
    this.#signal = signal;
  }
}

const NO_CREDENTIALS: Credentials = { apiKey: undefined, authToken: undefined };

function ignoreBytes(_bytes: number): void {}

/** A shared function, so that a call does not allocate its own. */
function noteDecision(this: { readonly decisions: UpstreamDecision[] }, decision: UpstreamDecision): void {
  this.decisions.push(decision);
}
