import type { LanceError } from "../errors.ts";
import type { Call, CallInit } from "./call.ts";
import type { Reception } from "./reception.ts";

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
