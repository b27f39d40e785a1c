import type { DescMethodServerStreaming, Message } from "@bufbuild/protobuf";
import type { Client, ClientReadableStream, Metadata } from "@grpc/grpc-js";
import type { Call } from "../../namespace/call/call.ts";
import { limitReadAhead } from "../../runtime/internals/readable-state.ts";
import { repeatableOf } from "../resilience/resilience.ts";
import type { Channel } from "./channel/channels.ts";
import { Patience } from "./channel/patience.ts";
import { unreached, upstreamError } from "./errors.ts";
import { inTrace } from "./metadata.ts";
import { definitionOf } from "./method-definition.ts";
import { authorized, createWriterOf, deadlineOf, enter, type Upstream } from "./upstream.ts";

/** Returns the function of a method that answers with a body; the upstream sends no more of it than is read. */
export function downloadHandler(method: DescMethodServerStreaming, upstream: Upstream) {
  const { path, responseDeserialize } = definitionOf(method);
  const writerOf = createWriterOf(method);
  const { resilience, policy, limits } = upstream;

  function open(client: Client, request: Message, metadata: Metadata, call: Call) {
    const [write, options] = [writerOf(call), deadlineOf(call.deadline)];
    try {
      return client.makeServerStreamRequest(path, write, responseDeserialize, request, metadata, options);
    } catch (thrown) {
      // The channel was closed while the call waited for its turn, because its server is gone.
      throw unreached(thrown);
    }
  }

  return async function* (request: Message, call: Call): AsyncIterable<Message> {
    let stream: ClientReadableStream<Message> | undefined;
    const cancel = () => stream?.cancel();
    const patience = new Patience(cancel);
    let held: Channel | undefined;
    const leave = () => {
      held?.gate.leave();
      held = undefined;
    };
    let begun = false;
    call.signal.throwIfAborted();
    call.signal.addEventListener("abort", cancel);
    try {
      const pairs = policy.sent(call, request);
      const repeatable = repeatableOf(method, pairs);
      const [first, messages] = await authorized(upstream, pairs, call, (metadata) =>
        resilience.run(call, repeatable, async (channel, _, { onSent }) => {
          const client = await enter(channel, call.signal, call);
          held = channel;
          call.signal.throwIfAborted();
          let headed = false;
          try {
            stream = open(client, request, inTrace(metadata), call);
            limitReadAhead(stream, MESSAGES_AHEAD);
            onSent();
            stream.once("metadata", () => {
              headed = true;
            });
            const messages: AsyncIterator<Message> = stream[Symbol.asyncIterator]();
            patience.awaitFirst(limits.firstByteMs);
            // The first message proves that the upstream has accepted the call.
            return [await messages.next(), messages] as const;
          } catch (thrown) {
            leave();
            throw patience.reason ?? upstreamError(thrown, call, { headed });
          } finally {
            patience.rest();
          }
        }),
      );
      if (first.done) return;
      begun = true;
      policy.filterContext(first.value, call);
      yield first.value;
      for (;;) {
        patience.awaitNext(limits.idleMs);
        const { done, value } = await messages.next();
        patience.rest();
        if (done) return;
        policy.filterContext(value, call);
        yield value;
      }
    } catch (thrown) {
      throw patience.reason ?? upstreamError(thrown, call, { begun });
    } finally {
      patience.rest();
      call.signal.removeEventListener("abort", cancel);
      // A reader that leaves early does not need the rest.
      cancel();
      leave();
    }
  };
}

/** Number of messages that are read ahead of the reader of an answer: the next one is there when the reader asks for it. grpc-js reads 16 of any size. */
const MESSAGES_AHEAD = 2;
