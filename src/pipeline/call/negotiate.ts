import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { toIpcFile } from "../../arrow/file.ts";
import { ARROW_FILE, ARROW_STREAM, acceptedArrow } from "../../arrow/ipc-forms.ts";
import { toIpcStream } from "../../arrow/to-stream.ts";
import type { HttpBody } from "../../gen/google/api/httpbody_pb.ts";
import { bodyFieldOf } from "../../namespace/body-field.ts";
import type { Call } from "../../namespace/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { type Interceptor, isStream } from "./interceptor.ts";
import { shareContext } from "./resolve.ts";

/** Fits responses to their clients: the form of Arrow, and the headers that are also entries of the context. */
export const fitResponse: Interceptor = async (call, request, next) => {
  const response = await next(call, request);
  if (isStream(response)) return fitted(response, call);
  shareContext(response, call);
  return response;
};

async function* fitted(messages: AsyncIterable<Message>, call: Call): AsyncIterable<never> {
  for await (const message of negotiateArrow(messages, call)) {
    shareContext(message, call);
    yield message as never;
  }
}

/** Conversions of one form of Arrow to the other. */
const CONVERSIONS = {
  [ARROW_FILE]: { from: ARROW_STREAM, convert: toIpcFile },
  [ARROW_STREAM]: { from: ARROW_FILE, convert: toIpcStream },
} as const;

/**
 * Converts an Arrow answer to the form that the client accepts: an IPC stream becomes an IPC file if the client
 * requests one, or requests nothing over REST, whose specification promises a file; and a file of another server
 * becomes a stream.
 */
export async function* negotiateArrow(messages: AsyncIterable<Message>, call: Call): AsyncIterable<Message> {
  const bodyField = bodyFieldOf(call.method.output);
  if (bodyField === undefined) {
    yield* messages;
    return;
  }
  const accepted = acceptedArrow(call);
  const { from, convert } = CONVERSIONS[accepted];
  const iterator = messages[Symbol.asyncIterator]();
  try {
    const first = await iterator.next();
    if (first.done) return;
    const body = bodyOf(first.value, bodyField);
    if (body?.contentType !== from) {
      yield first.value;
      yield* { [Symbol.asyncIterator]: () => iterator };
      return;
    }
    const bytes = chunks(first.value, iterator, bodyField);
    let context = (first.value as { context?: Record<string, string> }).context;
    for await (const data of converted(bytes, convert)) {
      yield withBody(call.method.output, bodyField, { contentType: accepted, data }, context);
      context = undefined;
    }
  } finally {
    await iterator.return?.();
  }
}

/** Converts a body. If it is not Arrow, the catalog is at fault, not the client. */
async function* converted(
  bytes: AsyncIterable<Uint8Array>,
  convert: (bytes: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  let failure: { readonly reason: unknown } | undefined;
  async function* watched(): AsyncIterable<Uint8Array> {
    try {
      yield* bytes;
    } catch (reason) {
      failure = { reason };
      throw reason;
    }
  }
  try {
    yield* convert(watched());
  } catch (thrown) {
    if (failure !== undefined || !isLanceError(thrown, "InvalidInput")) throw thrown;
    const text = `the catalog's answer is no whole Arrow: ${thrown.message}`;
    throw new LanceError("ServiceUnavailable", text, { cause: thrown });
  }
}

async function* chunks(
  first: Message,
  rest: AsyncIterator<Message>,
  bodyField: string,
): AsyncIterable<Uint8Array> {
  yield bodyOf(first, bodyField)?.data ?? new Uint8Array();
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    yield bodyOf(next.value, bodyField)?.data ?? new Uint8Array();
  }
}

function bodyOf(message: Message, field: string): HttpBody | undefined {
  return (message as unknown as Record<string, HttpBody | undefined>)[field];
}

function withBody(
  desc: DescMessage,
  field: string,
  body: { contentType: string; data: Uint8Array },
  context: Record<string, string> = {},
): Message {
  return create(desc, { context, [field]: body } as never);
}
