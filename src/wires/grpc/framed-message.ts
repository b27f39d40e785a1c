import type { DescMessage, Message } from "@bufbuild/protobuf";

const FRAME: unique symbol = Symbol("frame");

/** A message of an answer that is already written, with its prefix; it has none of its fields. */
interface FramedMessage extends Message {
  readonly [FRAME]: Buffer;
}

/** Returns the message of a stream that is the given frame. It serves messages that are too large to be copied once more. */
export function framedMessage({ typeName }: DescMessage, frame: Buffer): Message {
  const message: FramedMessage = { $typeName: typeName, [FRAME]: frame };
  return message;
}

/** Returns the frame of a message that {@link framedMessage} has made; undefined for any other. */
export function frameIn(message: Message): Buffer | undefined {
  return (message as Partial<FramedMessage>)[FRAME];
}
