import { setImmediate } from "node:timers/promises";
import { create, type DescFile, type Message, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import type { Rpc } from "../wires/rpc.ts";
import { createDescriptorIndex, type DescriptorIndex } from "./descriptor-index.ts";
import { sourceInfoOf } from "./source-info.ts";

type Answer = MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"];
type Request = ServerReflectionRequest["messageRequest"];

const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;

/**
 * The rpcs of grpc.reflection.v1 and v1alpha over the given files, all their imports, and reflection itself.
 *
 * An answer contains a file with all its imports and the comments of the contract, so that a client needs a single
 * request for a service. A missing name is an error response inside the stream.
 */
export function reflectionRpcs(files: readonly DescFile[]): Rpc[] {
  const own = [ServerReflection, ServerReflectionAlpha];
  const index = createDescriptorIndex([...files, ...own.map((service) => service.file)]);
  return own.map((service): Rpc => {
    const method = service.method.serverReflectionInfo;
    return {
      kind: "stream",
      method,
      async *handle(requests) {
        for await (const request of requests) {
          // Both versions have the same fields; only the package differs.
          const originalRequest = request as ServerReflectionRequest;
          const messageResponse = await answerOf(index, originalRequest.messageRequest);
          const init = { validHost: originalRequest.host, originalRequest, messageResponse };
          yield create(method.output, init as object) as Message;
        }
      },
    };
  });
}

function answerOf(index: DescriptorIndex, request: Request): Answer | Promise<Answer> {
  switch (request.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: index.services.map((name) => ({ name })) },
      };
    case "fileByFilename":
      return fileAnswer(index, index.fileNamed(request.value));
    case "fileContainingSymbol":
      return fileAnswer(index, index.fileWithSymbol(request.value));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = request.value;
      return fileAnswer(index, index.fileWithExtension(containingType, extensionNumber));
    }
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionNumbers(request.value);
      if (extensionNumber === undefined) return errorAnswer(NOT_FOUND, "there is no such message");
      const value = { baseTypeName: request.value, extensionNumber };
      return { case: "allExtensionNumbersResponse", value };
    }
    default:
      return errorAnswer(INVALID_ARGUMENT, "the request has no question that is known here");
  }
}

async function fileAnswer(index: DescriptorIndex, file: DescFile | undefined): Promise<Answer> {
  if (file === undefined) return errorAnswer(NOT_FOUND, "no file has it");
  // Compiled descriptors lack the comments of the contract, and most processes are never asked for them.
  const { COMMENTS } = await import("../gen/lance/comments.ts");
  const fileDescriptorProto: Uint8Array[] = [];
  for (const each of index.withImports(file)) {
    // The first answer encodes all files, which takes longer than other calls should wait.
    if (!encoded.has(each)) await setImmediate();
    fileDescriptorProto.push(bytesOf(each, COMMENTS));
  }
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

/** Encoded files. Encoding them for each of a stranger's requests would take 2 ms. */
const encoded = new WeakMap<DescFile, Uint8Array>();

function bytesOf(file: DescFile, comments: Parameters<typeof sourceInfoOf>[1]): Uint8Array {
  const known = encoded.get(file);
  if (known !== undefined) return known;
  const sourceCodeInfo = sourceInfoOf(file.proto, comments);
  const bytes = toBinary(FileDescriptorProtoSchema, { ...file.proto, sourceCodeInfo });
  encoded.set(file, bytes);
  return bytes;
}

function errorAnswer(errorCode: number, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
