import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { LanceError } from "../../namespace/errors.ts";
import { checkBinary } from "../binary-budget.ts";
import type { Frame } from "./frame.ts";
import { unpack } from "./gzip.ts";

/** How the messages of a request may be encoded. */
export interface MessageOptions {
  /** Whether messages with the compressed flag are gzip; otherwise they are an error. */
  readonly gzipIn: boolean;
  readonly maxMessageBytes: number;
}

/**
 * Decodes a message.
 *
 * @throws LanceError InvalidInput, for bytes that are not a message of this type, and for a message with too many
 *   fields.
 */
export function decode(description: DescMessage, data: Uint8Array): Message {
  checkBinary(description, data);
  try {
    return fromBinary(description, data);
  } catch (error) {
    const message = `a message is not a valid ${description.typeName}`;
    throw new LanceError("InvalidInput", message, { cause: error });
  }
}

/**
 * Unpacks a message that has the compressed flag.
 *
 * @throws LanceError Internal, if no encoding was announced; and the errors of {@link unpack}.
 */
export async function plainData(frame: Frame, options: MessageOptions): Promise<Uint8Array> {
  if (!frame.compressed) return frame.data;
  if (!options.gzipIn) {
    throw new LanceError(
      "Internal",
      "a message has the compressed flag, and grpc-encoding names no encoding",
    );
  }
  return unpack(frame.data, options.maxMessageBytes);
}

/** Returns the error for a body that ends inside a message. */
export function truncated(): LanceError {
  return new LanceError("Internal", "the request ends inside a message");
}
