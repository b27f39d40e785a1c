import { type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { MethodDefinition } from "@grpc/grpc-js";

/** Returns the description of a method for grpc-js. */
export function definitionOf(method: DescMethod): MethodDefinition<Message, Message> {
  const { input, output } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === "client_streaming",
    responseStream: method.methodKind === "server_streaming",
    requestSerialize: (message) => toBuffer(toBinary(input, message)),
    requestDeserialize: (bytes) => fromBinary(input, bytes),
    responseSerialize: (message) => toBuffer(toBinary(output, message)),
    responseDeserialize: (bytes) => fromBinary(output, bytes),
  };
}

/**
 * Returns the function that encodes requests without the fields that the gateway does not know: a newer server could read another
 * object in them than those about which the gateway has decided.
 */
export function knownFieldsWriter({ input }: DescMethod): (message: Message) => Buffer {
  return (message) => toBuffer(toBinary(input, message, { writeUnknownFields: false }));
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
