import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { mayPass } from "../../namespace/messages/passed-answer.ts";
import { repeatableOf } from "../resilience/resilience.ts";
import { answerOf } from "./answer.ts";
import { inTrace } from "./metadata.ts";
import { definitionOf } from "./method-definition.ts";
import { createPassingReader } from "./plain-message.ts";
import { authorized, createWriterOf, enter, type Upstream } from "./upstream.ts";

/** Returns the function of a method with a single request and a single response. */
export function unaryHandler(method: DescMethodUnary, upstream: Upstream) {
  const { path, responseDeserialize } = definitionOf(method);
  const writerOf = createWriterOf(method);
  const { resilience, policy, limits } = upstream;
  const passOrRead = createPassingReader(method);
  return async (request: Message, call: Call): Promise<Message> => {
    const pairs = policy.sent(call, request);
    const repeatable = repeatableOf(method, pairs);
    const write = writerOf(call);
    const read = mayPass(call, "binary") ? passOrRead : responseDeserialize;
    const answer = await authorized(upstream, pairs, call, (metadata) =>
      resilience.run(call, repeatable, (channel, signal, { elapsedMs, onSent }) => {
        const endsAt = endOf(upstream, elapsedMs);
        const onEnd = () => channel.gate.leave();
        const make = () =>
          answerOf({ call, signal, endsAt, onEnd }, (answer) => {
            answer.patience.awaitFirst(limits.firstByteMs);
            onSent();
            const deadline = earliest(call.deadline, endsAt);
            const started = { path, request, metadata: inTrace(metadata), deadline, write, read };
            return channel.unary(started, answer);
          });
        const entered = enter(channel, signal, call, endsAt);
        return entered instanceof Promise ? entered.then(make) : make();
      }),
    );
    policy.filterContext(answer, call);
    return answer;
  };
}

/** Returns the end of the gateway's own limit for a call, in epoch milliseconds; undefined without a limit. */
function endOf({ timeoutMs }: Upstream, elapsedMs: number): number | undefined {
  return timeoutMs === undefined ? undefined : Date.now() + timeoutMs - elapsedMs;
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
