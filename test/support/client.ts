import {
  create,
  type DescMethodBiDiStreaming,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { type HttpBody, HttpBodySchema } from "../../src/gen/google/api/httpbody_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import { bodyFieldOf } from "../../src/namespace/operations/method-facts.ts";

type Methods = typeof LanceNamespaceService.method;

type AnyMethod =
  | DescMethodUnary
  | DescMethodClientStreaming
  | DescMethodServerStreaming
  | DescMethodBiDiStreaming;
type Init = Record<string, unknown>;

/** An Arrow body: all at once, or in pieces that are cut anywhere. */
export type UploadBody = Uint8Array | AsyncIterable<Uint8Array>;

/** A collected streamed answer. */
export interface Download {
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

type ClientMethod<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request?: MessageInitShape<I>) => Promise<MessageShape<O>>
    : M extends DescMethodClientStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, body: UploadBody) => Promise<MessageShape<O>>
      : M extends DescMethodServerStreaming<infer I, infer _O>
        ? (request?: MessageInitShape<I>) => Promise<Download>
        : never;

/** Every operation as a function that throws a failure as a {@link CallError}, whatever the protocol. */
export type LanceClient = { readonly [K in Operation]: ClientMethod<Methods[K]> };

/** The part of {@link createClient} that depends on the protocol. */
export interface Invoker {
  unary(method: DescMethodUnary, request: Message): Promise<Message>;
  upload(
    method: DescMethodClientStreaming,
    request: Message,
    body: AsyncIterable<Uint8Array>,
  ): Promise<Message>;
  download(method: DescMethodServerStreaming, request: Message): Promise<Download>;
}

/** Headers that a client sends with every call; metadata in gRPC. */
export type Headers = Readonly<Record<string, string>>;

/** A client of one protocol. */
export interface ProtocolClient {
  readonly client: LanceClient;
  close(): void;
}

/** A failed call, as far as its protocol can express it. */
export interface Failure {
  /** The Lance error code; undefined when the answer carries none. */
  readonly code: number | undefined;
  readonly httpStatus?: number;
  readonly grpcCode?: number;
}

/** A failed call. */
export class CallError extends Error {
  readonly failure: Failure;

  constructor(message: string, failure: Failure, options?: ErrorOptions) {
    super(`${message} (${JSON.stringify(failure)})`, options);
    this.failure = failure;
  }
}

/** Creates a typed client over one protocol from the descriptor of the service. */
export function createClient(invoker: Invoker): LanceClient {
  const methods = LanceNamespaceService.methods.map((method: AnyMethod) => {
    switch (method.methodKind) {
      case "unary":
        return [
          method.localName,
          (init: Init = {}) => invoker.unary(method, create(method.input, init)),
        ] as const;
      case "client_streaming":
        return [
          method.localName,
          (init: Init, body: UploadBody) => invoker.upload(method, create(method.input, init), pieces(body)),
        ] as const;
      case "server_streaming":
        return [
          method.localName,
          (init: Init = {}) => invoker.download(method, create(method.input, init)),
        ] as const;
      default:
        throw new Error(`${method.name} streams both ways`);
    }
  });
  return Object.fromEntries(methods) as unknown as LanceClient;
}

async function* pieces(body: UploadBody): AsyncIterable<Uint8Array> {
  if (body instanceof Uint8Array) yield body;
  else yield* body;
}

/** Collects the pieces of a streamed answer. */
export async function collect(
  method: DescMethodServerStreaming,
  messages: AsyncIterable<Message>,
): Promise<Download> {
  const field = bodyFieldOf(method.output) as string;
  const parts: Uint8Array[] = [];
  let contentType = "";
  for await (const message of messages) {
    const body = (message as unknown as Record<string, HttpBody | undefined>)[field];
    contentType ||= body?.contentType ?? "";
    parts.push(body?.data ?? new Uint8Array());
  }
  return { contentType, bytes: Buffer.concat(parts) };
}

/**
 * Yields the request messages of an upload: the parameters with the first piece, then a message for each further piece.
 */
export async function* uploadMessages(
  method: DescMethodClientStreaming,
  request: Message,
  body: AsyncIterable<Uint8Array>,
): AsyncIterable<Message> {
  const field = bodyFieldOf(method.input) as string;
  let message = request;
  let sent = 0;
  for await (const data of body) {
    (message as unknown as Record<string, HttpBody>)[field] = create(HttpBodySchema, {
      contentType: "application/vnd.apache.arrow.stream",
      data,
    });
    yield message;
    sent += 1;
    message = create(method.input);
  }
  if (sent === 0) yield request;
}
