import { create, type DescMethod, type DescMethodClientStreaming, type Message } from "@bufbuild/protobuf";
import type { ClientWritableStream } from "@grpc/grpc-js";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { bodyFieldOf } from "../../namespace/operations/message-fields.ts";
import { ArrivingBytes } from "../../runtime/arriving-bytes.ts";
import { repeatableOf } from "../resilience/resilience.ts";
import { toldToClient } from "../upstream-identity/identity.ts";
import { answerOf } from "./answer.ts";
import { inTrace } from "./metadata.ts";
import { definitionOf } from "./method-definition.ts";
import { createWriterOf, deadlineOf, enter, metadataOf, type Upstream } from "./upstream.ts";

/** Returns the function of a method that takes a body; it reads no more of the body than the upstream takes. */
export function uploadHandler(method: DescMethodClientStreaming, upstream: Upstream) {
  const { path, responseDeserialize } = definitionOf(method);
  const writerOf = createWriterOf(method);
  const { resilience, policy, identity, limits } = upstream;
  const field = bodyFieldOf(method.input) as string;
  return async (request: Message, data: AsyncIterable<Uint8Array>, call: Call): Promise<Message> => {
    const pairs = policy.sent(call, request);
    const metadata = metadataOf(upstream, pairs, await identity.credentials(call));
    let failure: unknown;
    const answer = await resilience.run(call, repeatableOf(method, pairs), async (channel, signal) => {
      const client = await enter(channel, signal, call);
      const onEnd = () => channel.gate.leave();
      try {
        return await answerOf({ call, signal, bodySent: true, onEnd }, (pending) => {
          const stream = client.makeClientStreamRequest(
            path,
            writerOf(call),
            responseDeserialize,
            inTrace(metadata),
            // The sender of a body decides how long it takes.
            deadlineOf(call.deadline),
            (error, answer) => (error === null ? pending.done(answer as Message) : pending.fail(error)),
          );
          stream.once("metadata", () => {
            pending.begun = true;
          });
          const observer = {
            onWaiting: () => pending.patience.awaitFirst(limits.firstByteMs),
            onTaken: () => pending.patience.rest(),
          };
          send(stream, uploadMessages(method, field, request, data, call), observer).catch((thrown) => {
            failure = thrown;
            stream.cancel();
          });
          return stream;
        });
      } catch (thrown) {
        throw toldToClient(failure ?? thrown, identity);
      }
    });
    policy.filterContext(answer, call);
    return answer;
  };
}

/** Observes the sending of messages. */
interface SendingObserver {
  /** The upstream must now take what was written, or answer after the last message. */
  onWaiting(): void;
  /** The upstream has taken what was written, and the sender waits for the next message. */
  onTaken(): void;
}

/**
 * Sends messages until they or the call end, each once the upstream has taken the one before: the stream would keep 16 of them, whose 8 MiB
 * count against no budget by then.
 */
async function send(
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
async function* uploadMessages(
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

/**
 * Size of the pieces of a body in messages, in bytes: a message costs the same whatever its size, upstreams bound
 * their messages, and several messages are in transit at once.
 */
export const MESSAGE_BYTES = 512 * 1024;

/**
 * Passes a body on in pieces of {@link MESSAGE_BYTES}, except for the last: it joins small pieces and cuts large
 * ones.
 */
export async function* inMessageSizes(data: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let waiting = new ArrivingBytes();
  for await (const piece of data) {
    for (let start = 0; start < piece.length; ) {
      const part = piece.subarray(start, start + MESSAGE_BYTES - waiting.size);
      start += part.length;
      waiting.push(part);
      if (waiting.size < MESSAGE_BYTES) continue;
      yield waiting.whole();
      waiting = new ArrivingBytes();
    }
  }
  if (waiting.size > 0) yield waiting.whole();
}
