import type { DescMethodClientStreaming, Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { bodyFieldOf } from "../../namespace/operations/body-field.ts";
import { repeatableOf } from "../resilience/resilience.ts";
import { toldToClient } from "../upstream-identity/refusal.ts";
import { answerOf } from "./answer.ts";
import { inTrace } from "./metadata.ts";
import { definitionOf } from "./method-definition.ts";
import { send, uploadMessages } from "./upload-messages.ts";
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
