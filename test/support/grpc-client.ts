import { type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import {
  Client,
  type ClientOptions,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
} from "@grpc/grpc-js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { type ErrorResponse, ErrorResponseSchema } from "../../src/gen/lance/namespace/v1/common_pb.ts";
import {
  CallError,
  collect,
  createClient,
  type Headers,
  type ProtocolClient,
  uploadMessages,
} from "./client.ts";

const UNLIMITED: ClientOptions = {
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
};

/** Creates a client of gRPC with the stock Node client and definitions from the descriptors. */
export function createGrpcClient(
  port: number,
  headers: Headers = {},
  options: ClientOptions = {},
): ProtocolClient {
  const metadata = Metadata.fromHttp2Headers(headers);
  const channel = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { ...UNLIMITED, ...options });

  const client = createClient({
    unary: (method, request) =>
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = definitionOf(method);
        channel.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          (error, answer) => (error ? reject(grpcError(error)) : resolve(answer as Message)),
        );
      }),

    upload: (method, request, body) =>
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = definitionOf(method);
        const call = channel.makeClientStreamRequest(
          path,
          requestSerialize,
          responseDeserialize,
          metadata,
          (error, answer) => (error ? reject(grpcError(error)) : resolve(answer as Message)),
        );
        // A call that has ended takes no more messages; its outcome is in the callback.
        let over = false;
        const ended = new Promise<void>((done) => {
          call.once("status", () => {
            over = true;
            done();
          });
        });
        const send = async () => {
          for await (const message of uploadMessages(method, request, body)) {
            const sent = new Promise<void>((done) => call.write(message, () => done()));
            await Promise.race([sent, ended]);
            if (over) return;
          }
          call.end();
        };
        send().catch((error: unknown) => {
          call.cancel();
          reject(error);
        });
      }),

    download: async (method, request) => {
      const { path, requestSerialize, responseDeserialize } = definitionOf(method);
      const call = channel.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
      );
      try {
        return await collect(method, call);
      } catch (error) {
        throw grpcError(error as ServiceError);
      }
    },
  });
  return { client, close: () => channel.close() };
}

/** Returns the definition of a method for grpc-js. */
export function definitionOf(method: DescMethod): MethodDefinition<Message, Message> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === "client_streaming",
    responseStream: method.methodKind === "server_streaming",
    requestSerialize: (message) => Buffer.from(toBinary(method.input, message)),
    requestDeserialize: (bytes) => fromBinary(method.input, bytes),
    responseSerialize: (message) => Buffer.from(toBinary(method.output, message)),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

/** Returns the Lance error in the rich status of a failed call. */
export function errorDetail(error: ServiceError): ErrorResponse | undefined {
  const [bytes] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (!(bytes instanceof Uint8Array)) return undefined;
  const detail = fromBinary(StatusSchema, bytes).details.find((any) =>
    any.typeUrl.endsWith(`/${ErrorResponseSchema.typeName}`),
  );
  return detail && fromBinary(ErrorResponseSchema, detail.value);
}

function grpcError(error: ServiceError): CallError {
  return new CallError(
    error.details,
    { code: errorDetail(error)?.code, grpcCode: error.code },
    { cause: error },
  );
}
