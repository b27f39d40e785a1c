import {
  create,
  type DescMethod,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type Message,
} from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { Client, ClientReadableStream, ClientWritableStream, Metadata } from "@grpc/grpc-js";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { mayPass, passedAnswer } from "../../namespace/messages/passed-answer.ts";
import { bodyFieldOf } from "../../namespace/operations/method-facts.ts";
import { ArrivingBytes } from "../../runtime/byte-memory.ts";
import { limitReadAhead } from "../../runtime/internals/readable-state.ts";
import { repeatableOf } from "../resilience/resilience.ts";
import { toldToClient } from "../upstream-identity/identity.ts";
import { hasNested } from "../upstream-identity/nested-context.ts";
import { answerOf } from "./answer.ts";
import { type Channel, definitionOf } from "./channel/channels.ts";
import { Patience } from "./channel/patience.ts";
import { unreached, upstreamError } from "./errors.ts";
import {
  authorized,
  createWriterOf,
  deadlineOf,
  enter,
  inTrace,
  metadataOf,
  type Upstream,
} from "./upstream.ts";

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

/** Reads the answer of an upstream. */
type ReadAnswer = (bytes: Uint8Array) => Message;

/**
 * Compiles the reader of answers that may pass through: those without a context at any level. It checks the bytes field
 * by field, but not inside of a field, which is the client's to read.
 *
 * The reader throws an error for bytes that are not a message.
 */
export function createPassingReader({ output }: DescMethod): ReadAnswer {
  const context = output.fields.find(({ name }) => name === "context")?.number;
  if (hasNested(output)) return (bytes) => fromBinary(output, bytes);
  return (bytes) => (hasField(bytes, context) ? fromBinary(output, bytes) : passedAnswer(output, bytes));
}

/** Whether a message has a field with a number. */
function hasField(bytes: Uint8Array, number: number | undefined): boolean {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === number) return true;
    reader.skip(wireType, field);
  }
  return false;
}

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
