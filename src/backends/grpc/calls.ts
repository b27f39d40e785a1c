import {
  create,
  type DescMethod,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type Message,
} from "@bufbuild/protobuf";
import type { CallOptions, ClientReadableStream, ClientWritableStream, Metadata } from "@grpc/grpc-js";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { bodyFieldOf } from "../../namespace/body-field.ts";
import type { Call } from "../../namespace/call.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { HeaderPolicy } from "../upstream-identity/headers.ts";
import type { CredentialHeaders, UpstreamIdentity } from "../upstream-identity/identity.ts";
import type { Channels } from "./channels.ts";
import { definitionOf } from "./definition.ts";
import { upstreamError } from "./errors.ts";
import { inMessageSizes } from "./message-sizes.ts";
import { toMetadata } from "./metadata.ts";

/** What the calls of a backend share. */
export interface Upstream {
  readonly channels: Channels;
  readonly policy: HeaderPolicy;
  readonly identity: UpstreamIdentity;
  /** The longest that a call with a single answer may take, in milliseconds. */
  readonly timeoutMs: number | undefined;
}

/** The function of a method with one request and one response. */
export function unaryHandler(method: DescMethodUnary, upstream: Upstream) {
  const { path, requestSerialize, responseDeserialize } = definitionOf(method);
  return async (request: Message, call: Call): Promise<Message> => {
    const client = await upstream.channels.pick();
    const answer = await authorized(upstream, request, call, (metadata) =>
      settled(call, (done) =>
        client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          optionsOf(call, upstream),
          done,
        ),
      ),
    );
    upstream.policy.filterContext(answer);
    return answer;
  };
}

/** The function of a method that takes a body; no more of it is read than the upstream takes. */
export function uploadHandler(method: DescMethodClientStreaming, upstream: Upstream) {
  const { path, requestSerialize, responseDeserialize } = definitionOf(method);
  const field = bodyFieldOf(method.input) as string;
  return async (request: Message, data: AsyncIterable<Uint8Array>, call: Call): Promise<Message> => {
    const client = await upstream.channels.pick();
    const pairs = upstream.policy.sent(call, request);
    const metadata = metadataOf(upstream, pairs, await upstream.identity.credentials(call));
    let failure: unknown;
    try {
      const answer = await settled(call, (done) => {
        const stream = client.makeClientStreamRequest(
          path,
          requestSerialize,
          responseDeserialize,
          metadata,
          // The time of a body is its sender's.
          deadlineOf(call.deadline),
          done,
        );
        send(stream, messagesOf(method, field, request, data, call)).catch((thrown: unknown) => {
          failure = thrown;
          stream.cancel();
        });
        return stream;
      });
      upstream.policy.filterContext(answer);
      return answer;
    } catch (thrown) {
      throw failure ?? thrown;
    }
  };
}

/** The function of a method that answers with a body; the upstream sends no more of it than is taken. */
export function downloadHandler(method: DescMethodServerStreaming, upstream: Upstream) {
  const { path, requestSerialize, responseDeserialize } = definitionOf(method);
  return async function* (request: Message, call: Call): AsyncIterable<Message> {
    const client = await upstream.channels.pick();
    let stream: ClientReadableStream<Message> | undefined;
    const cancel = () => stream?.cancel();
    call.signal.throwIfAborted();
    call.signal.addEventListener("abort", cancel);
    try {
      const [first, messages] = await authorized(upstream, request, call, (metadata) => {
        const options = deadlineOf(call.deadline);
        stream = client.makeServerStreamRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          options,
        );
        return begun(stream, call);
      });
      if (first.done) return;
      upstream.policy.filterContext(first.value);
      yield first.value;
      yield* { [Symbol.asyncIterator]: () => messages };
    } catch (thrown) {
      throw upstreamError(thrown, call);
    } finally {
      call.signal.removeEventListener("abort", cancel);
      // A reader that leaves early has no use for the rest.
      cancel();
    }
  };
}

/** Waits for the first message, with which it is clear that the upstream has taken the call. */
async function begun(
  stream: ClientReadableStream<Message>,
  call: Call,
): Promise<readonly [IteratorResult<Message>, AsyncIterator<Message>]> {
  const messages: AsyncIterator<Message> = stream[Symbol.asyncIterator]();
  try {
    return [await messages.next(), messages];
  } catch (thrown) {
    throw upstreamError(thrown, call);
  }
}

/** Makes a call with credentials, and once more with others if there are any and the upstream refuses these. */
async function authorized<T>(
  upstream: Upstream,
  request: Message,
  call: Call,
  attempt: (metadata: Metadata) => Promise<T>,
): Promise<T> {
  const { identity, policy } = upstream;
  const pairs = policy.sent(call, request);
  const credentials = await identity.credentials(call);
  try {
    return await attempt(metadataOf(upstream, pairs, credentials));
  } catch (error) {
    if (!isLanceError(error, "Unauthenticated") || !identity.refused(call, credentials)) throw error;
    return attempt(metadataOf(upstream, pairs, await identity.credentials(call)));
  }
}

function metadataOf(
  { policy }: Upstream,
  pairs: readonly string[],
  credentials: CredentialHeaders,
): Metadata {
  const all = [...pairs];
  policy.addCredentials(all, credentials);
  return toMetadata(all);
}

type Done = (error: Error | null, answer?: Message) => void;

/** Begins a call with a single answer and waits for it, or for the end of our own call. */
function settled(call: Call, begin: (done: Done) => { cancel(): void }): Promise<Message> {
  const { signal } = call;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const running = begin((error, answer) => {
      signal.removeEventListener("abort", cancel);
      if (error === null) resolve(answer as Message);
      else reject(upstreamError(error, call));
    });
    const cancel = () => running.cancel();
    signal.addEventListener("abort", cancel);
  });
}

async function send(stream: ClientWritableStream<Message>, messages: AsyncIterable<Message>): Promise<void> {
  // A call that has ended takes no more messages; how it ended is told to its caller.
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
    await new Promise<void>((resolve) => {
      wake = resolve;
      if (over) resolve();
    });
  }
  if (!over) stream.end();
}

/** The request, and then messages of nothing but the body. */
async function* messagesOf(
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

function optionsOf({ deadline }: Call, { timeoutMs }: Upstream): CallOptions {
  if (timeoutMs === undefined) return deadlineOf(deadline);
  return { deadline: Math.min(deadline ?? Number.POSITIVE_INFINITY, Date.now() + timeoutMs) };
}

function deadlineOf(deadline: number | undefined): CallOptions {
  return deadline === undefined ? {} : { deadline };
}
