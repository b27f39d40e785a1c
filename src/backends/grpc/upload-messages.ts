import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import type { ClientWritableStream } from "@grpc/grpc-js";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { inMessageSizes } from "./message-sizes.ts";

/** Observes the sending of messages. */
export interface SendingObserver {
  /** The upstream must now take what was written, or answer after the last message. */
  onWaiting(): void;
  /** The upstream has taken what was written, and the sender waits for the next message. */
  onTaken(): void;
}

/**
 * Sends messages until they or the call end, each once the upstream has taken the one before: the stream would keep 16 of them, whose 8 MiB
 * count against no budget by then.
 */
export async function send(
  stream: ClientWritableStream<Message>,
  messages: AsyncIterable<Message>,
  { onWaiting, onTaken }: SendingObserver,
): Promise<void> {
  // A call that has ended takes no more messages; its caller gets the reason.
  let over = false;
  let wake = () => {};
  stream.once("status", () => {
    over = true;
    wake();
  });
  for await (const message of messages) {
    if (over) return;
    onWaiting();
    await new Promise<void>((resolve) => {
      wake = resolve;
      stream.write(message, () => resolve());
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
    // The upstream has taken it, or the library keeps it to repeat the call: at most 16 MiB of all calls.
    call.releaseBody(piece.length);
  }
}
