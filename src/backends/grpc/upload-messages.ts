import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import type { ClientWritableStream } from "@grpc/grpc-js";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import type { Call } from "../../namespace/call.ts";
import { inMessageSizes } from "./message-sizes.ts";

/** Observes the sending of messages. */
export interface SendingObserver {
  /** The upstream must now take what was written, or answer after the last message. */
  onWaiting(): void;
  /** The upstream has taken what was written, and the sender waits for the next message. */
  onTaken(): void;
}

/** Sends messages, as fast as the upstream takes them, until they or the call end. */
export async function send(
  stream: ClientWritableStream<Message>,
  messages: AsyncIterable<Message>,
  { onWaiting, onTaken }: SendingObserver,
): Promise<void> {
  // A call that has ended takes no more messages; its caller gets the reason.
  let over = false;
  let wake = () => {};
  const onChange = () => wake();
  stream.on("drain", onChange).once("status", () => {
    over = true;
    onChange();
  });
  for await (const message of messages) {
    if (over) return;
    if (stream.write(message)) continue;
    onWaiting();
    await new Promise<void>((resolve) => {
      wake = resolve;
      if (over) resolve();
    });
    onTaken();
  }
  if (over) return;
  stream.end();
  onWaiting();
}

/** Yields the request, and then messages that contain only the body. */
export async function* uploadMessages(
  { input }: DescMethod,
  field: string,
  request: Message,
  data: AsyncIterable<Uint8Array>,
  call: Call,
): AsyncIterable<Message> {
  yield request;
  for await (const piece of inMessageSizes(data)) {
    yield create(input, { [field]: create(HttpBodySchema, { data: piece }) } as never);
    // By now its bytes are in a message of their own.
    call.releaseBody(piece.length);
  }
}
