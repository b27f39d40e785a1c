import type {
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
} from "@bufbuild/protobuf";
import type { Call, CallInit } from "./call/call.ts";
import type { Reception } from "./call/reception.ts";
import type { LanceError } from "./errors.ts";

/** A method of any kind, by which sides of its calls stream. */
export type AnyMethod =
  | DescMethodUnary
  | DescMethodClientStreaming
  | DescMethodServerStreaming
  | DescMethodBiDiStreaming;

/** A call whose message is not read yet. */
export interface EarlyCall extends Pick<CallInit, "method" | "headers" | "certificate"> {
  /** Whether the message cannot bring a credential, although messages of the method can. Default: false. */
  readonly hasHeadersOnly?: boolean;
}

/**
 * Receives the calls of every wire: the method, the request and the call's context. The pipeline implements it; a
 * wire knows nothing of what follows.
 */
export interface Service {
  /**
   * Checks the caller before a wire reads the message of a call, and keeps the result in {@link Call.reception}; undefined leaves the check to
   * the pipeline. The message of a refused call stays unread: the wire passes the call on with an empty one. Default: callers are not
   * checked early.
   */
  receive?(call: EarlyCall): Reception | undefined | Promise<Reception | undefined>;
  unary(method: DescMethodUnary, request: Message, call: Call): Promise<Message>;
  /** The first message carries the parameters; `data` is the body of all messages, split anywhere. */
  upload(
    method: DescMethodClientStreaming,
    request: Message,
    data: AsyncIterable<Uint8Array>,
    call: Call,
  ): Promise<Message>;
  download(method: DescMethodServerStreaming, request: Message, call: Call): AsyncIterable<Message>;
}

/** The sender of a request of the Model Context Protocol (MCP), for whom its tools call the service. */
export interface McpCaller
  extends Pick<CallInit, "headers" | "address" | "peer" | "certificate" | "requestId" | "deadline" | "log"> {
  readonly signal: AbortSignal;
  /** The caller as proved before the request was read. */
  readonly reception: Reception | undefined;
  /** Called for each call that the request makes. */
  began(call: Call): void;
  /** Called for each call that fails. */
  failed(error: LanceError): void;
}

/** Answers a request of MCP, whose body has been parsed, for its caller. */
export type AnswerMcp = (request: Request, body: unknown, caller: McpCaller) => Promise<Response>;
