import { randomUUID } from "node:crypto";
import type {
  DescField,
  DescMethod,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
} from "@bufbuild/protobuf";
import { HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import type { Call } from "../namespace/call/call.ts";
import { LanceError } from "../namespace/errors.ts";
import { bodyFieldOf } from "../namespace/operations/method-facts.ts";
import type { Service } from "../namespace/service.ts";
import type { LongField } from "./grpc/long-field.ts";

/** Traits of a method beside its messages. */
interface RpcTraits {
  /** Checks the caller before the first message is read, as {@link Service.receive} does. Default: callers are not checked early. */
  readonly receive?: Service["receive"] | undefined;
  /** Whether its calls go ahead of the work that waits for the event loop. Default: false. */
  readonly isProbe?: boolean;
}

/** A method with a single request and a single response. */
export interface UnaryRpc extends RpcTraits {
  readonly kind: "unary";
  readonly method: DescMethodUnary;
  handle(request: Message, call: Call): Promise<Message>;
}

/** A method that streams in either direction or in both; a side that does not stream has a single message. */
export interface StreamRpc extends RpcTraits {
  readonly kind: "stream";
  readonly method: DescMethod;
  /** Where long requests may be cut as they arrive, with the rest in messages of {@link continuedMessage}. Default: each one comes as a whole. */
  readonly longField?: LongField | undefined;
  handle(requests: AsyncIterable<Message>, call: Call): AsyncIterable<Message>;
}

/** A method as gRPC, gRPC-Web and Connect serve it. */
export type Rpc = UnaryRpc | StreamRpc;

/**
 * Returns the rpcs of a service description, all served by a {@link Service}.
 *
 * @throws Error, at start, if a method streams in both directions or streams requests without a body.
 */
export function serviceRpcs(description: DescService, service: Service): Rpc[] {
  const { receive } = service;
  return description.methods.map((method) => ({ ...serviceRpc(method, service), receive }));
}

function serviceRpc(described: DescMethod, service: Service): Rpc {
  switch (described.methodKind) {
    case "unary": {
      const method = described as DescMethodUnary;
      return {
        kind: "unary",
        method,
        handle(request, call) {
          call.begun = true;
          return service.unary(method, request, call);
        },
      };
    }
    case "server_streaming": {
      const method = described as DescMethodServerStreaming;
      return {
        kind: "stream",
        method,
        async *handle(requests, call) {
          const request = await onlyRequest(requests);
          call.begun = true;
          yield* service.download(method, request, call);
        },
      };
    }
    case "client_streaming": {
      const method = described as DescMethodClientStreaming;
      const field = bodyFieldOf(method.input);
      if (field === undefined) throw new Error(`${method} streams requests that have no google.api.HttpBody`);
      const longField = [method.input.field[field] as DescField, HttpBodySchema.field.data] as const;
      return {
        kind: "stream",
        method,
        longField,
        async *handle(requests, call) {
          const { first, data } = await splitUpload(requests, field);
          call.begun = true;
          yield await service.upload(method, first, data, call);
        },
      };
    }
    case "bidi_streaming":
      throw new Error(`${described} streams in both directions, which a service of this kind cannot`);
  }
}

/** Returns the path of a method in gRPC, gRPC-Web and Connect, for example `/grpc.health.v1.Health/Check`. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Returns the client's request id if it is 1 to 128 visible ASCII characters, otherwise a new one. */
export function requestIdOf(header: string | string[] | null | undefined): string {
  return typeof header === "string" && REQUEST_ID.test(header) ? header : randomUUID();
}

/** Returns the error for a method that takes a single request and got another number; gRPC has this code for it. */
export function cardinalityError(found: "no" | "more than one"): LanceError {
  return new LanceError("Unsupported", `the method takes one request message, and ${found} message was sent`);
}

/**
 * Returns the request of a method that does not stream its requests.
 *
 * @throws LanceError Unsupported, unless there is exactly one.
 */
export async function onlyRequest(requests: AsyncIterable<Message>): Promise<Message> {
  let request: Message | undefined;
  for await (const message of requests) {
    if (request !== undefined) throw cardinalityError("more than one");
    request = message;
  }
  if (request === undefined) throw cardinalityError("no");
  return request;
}

/**
 * Creates the function that returns how many bytes of each message a call keeps, of all that the message took. A call keeps its request to its
 * end, and an upload its parameters: its reader counts the pieces of the body. A request in a stream with answers is kept until the next one.
 */
export function keptBytes({ methodKind, input }: DescMethod): (message: Message, bytes: number) => number {
  const field = methodKind === "client_streaming" ? bodyFieldOf(input) : undefined;
  let hasParameters = true;
  return (message, bytes) => {
    if (field === undefined) return bytes;
    if (!hasParameters) return 0;
    hasParameters = false;
    return Math.max(0, bytes - (pieceIn(message, field)?.data.length ?? 0));
  };
}

interface Upload {
  /** First message, without its piece of the body. */
  readonly first: Message;
  readonly data: AsyncIterable<Uint8Array>;
}

async function splitUpload(requests: AsyncIterable<Message>, field: string): Promise<Upload> {
  const messages = requests[Symbol.asyncIterator]();
  const head = await messages.next();
  if (head.done) {
    throw new LanceError("InvalidInput", "an upload requires at least one message, with the parameters");
  }
  const first = head.value;
  const firstPiece = takePiece(first, field);

  async function* pieces(): AsyncIterable<Uint8Array> {
    if (firstPiece !== undefined) yield firstPiece;
    for await (const message of { [Symbol.asyncIterator]: () => messages }) {
      const piece = takePiece(message, field);
      if (piece !== undefined) yield piece;
    }
  }
  return { first, data: pieces() };
}

/** Moves the bytes out of a message, so that code that keeps its parameters does not keep its body. */
function takePiece(message: Message, field: string): Uint8Array | undefined {
  const body = pieceIn(message, field);
  if (body === undefined || body.data.length === 0) return undefined;
  const piece = body.data;
  body.data = new Uint8Array(0);
  return piece;
}

function pieceIn(message: Message, field: string): { data: Uint8Array } | undefined {
  return (message as unknown as Record<string, { data: Uint8Array } | undefined>)[field];
}
