import { createServer, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ANSWERS, type Operation } from "./answers.ts";
import { createListener } from "./listener.ts";
import { createUpstream, type FaultyUpstream } from "./upstream.ts";

/** A received request, and the answer to it. */
export interface RestExchange {
  readonly socket: Socket;
  readonly type: string;
  readonly body: Buffer;
  readonly upstream: FaultyUpstream;
}

/** The upstream's behaviour in place of an answer. */
export type RestFault = (exchange: RestExchange) => unknown;

const READY = Buffer.from('{"namespaces":[]}');
const OPERATION_OF: Readonly<Record<string, Operation>> = {
  "table/describe": "describe",
  "table/query": "query",
  "table/insert": "insert",
  "namespace/create": "create",
};

/** Starts a REST upstream. A fault writes its answer to the connection byte for byte. */
export async function startRestUpstream(fault: RestFault, once: boolean): Promise<FaultyUpstream> {
  const server = createServer(async (request: IncomingMessage) => {
    const { socket } = request;
    const operation = operationOf(request);
    try {
      for await (const _ of request);
    } catch {
      return;
    }
    if (operation === undefined)
      return answerRest({ socket, type: "application/json", body: READY, upstream });
    const { type, body } = ANSWERS[operation];
    const before = upstream.add(operation);
    const act = once && before > 0 ? answerRest : fault;
    await act({ socket, type, body, upstream });
  });
  const listener = await createListener((socket) => server.emit("connection", socket));
  const upstream = createUpstream(listener);
  return upstream;
}

function operationOf({ url = "" }: IncomingMessage): Operation | undefined {
  const [, , resource, , verb] = (url.split("?")[0] as string).split("/");
  return OPERATION_OF[`${resource}/${verb}`];
}

/** Returns the head of an answer with a length. */
export function headOf({ type }: RestExchange, length: number, status = "200 OK", more = ""): string {
  return `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n${more}\r\n`;
}

/** Sends the regular answer. */
export function answerRest(exchange: RestExchange): void {
  exchange.socket.write(Buffer.concat([Buffer.from(headOf(exchange, exchange.body.length)), exchange.body]));
}

/** Sends the head and the first half of the body. */
export function halfAnswerRest(exchange: RestExchange): void {
  const { socket, body } = exchange;
  socket.write(headOf(exchange, body.length));
  socket.write(body.subarray(0, body.length / 2));
}

/** Sends the body in ten pieces, with a pause before each. */
export async function trickleRest(exchange: RestExchange, pauseMs: number): Promise<void> {
  const { socket, body } = exchange;
  socket.write(headOf(exchange, body.length));
  const size = Math.ceil(body.length / 10);
  for (let start = 0; start < body.length && !socket.destroyed; start += size) {
    await sleep(pauseMs);
    socket.write(body.subarray(start, start + size));
  }
}

/** Answers with an error and no body. */
export function refuseRest(exchange: RestExchange, status: string, retryAfter: number): void {
  exchange.socket.write(headOf(exchange, 0, status, `retry-after: ${retryAfter}\r\n`));
}
