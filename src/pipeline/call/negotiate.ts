import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { toIpcFile, toIpcStream } from "../../arrow/ipc/file.ts";
import {
  ARROW_FILE,
  ARROW_STREAM,
  acceptedArrow,
  acceptedRows,
  ROW_TYPES,
} from "../../arrow/ipc/ipc-forms.ts";
import { type RowsForm, toJsonRows } from "../../arrow/rows/json-rows.ts";
import { wholeMessages } from "../../arrow/rows/whole-messages.ts";
import type { HttpBody } from "../../gen/google/api/httpbody_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { ByteBudget } from "../../namespace/memory/byte-budget.ts";
import { bodyFieldOf } from "../../namespace/operations/method-facts.ts";
import { type Interceptor, isStream } from "./interceptor.ts";
import { shareContext } from "./resolve.ts";

/**
 * Fits responses to their clients: the form of the rows, and the headers that are also entries of the context.
 *
 * @param budget memory for the batches whose rows are written as JSON
 */
export function fitResponse(budget: ByteBudget): Interceptor {
  return async (call, request, next) => {
    const response = await next(call, request);
    if (isStream(response)) return fitted(response, call, budget);
    shareContext(response, call);
    return response;
  };
}

async function* fitted(
  messages: AsyncIterable<Message>,
  call: Call,
  budget: ByteBudget,
): AsyncIterable<never> {
  for await (const message of negotiateRows(messages, call, budget)) {
    shareContext(message, call);
    yield message as never;
  }
}

/** A conversion of a body: the media types that it takes, and the one that it makes. */
interface Conversion {
  readonly from: readonly string[];
  readonly to: string;
  convert(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
}

const TO_FILE: Conversion = { from: [ARROW_STREAM], to: ARROW_FILE, convert: toIpcFile };
const TO_STREAM: Conversion = { from: [ARROW_FILE], to: ARROW_STREAM, convert: toIpcStream };

function toRows(form: RowsForm, budget: ByteBudget): Conversion {
  return {
    from: [ARROW_STREAM, ARROW_FILE],
    to: ROW_TYPES[form],
    async *convert(bytes) {
      const hold = budget.open();
      try {
        yield* toJsonRows(wholeMessages(toIpcStream(bytes), hold), form, { hasDecimalTexts: true });
      } finally {
        hold.release();
      }
    },
  };
}

function conversionFor(call: Call, budget: ByteBudget): Conversion {
  const rows = acceptedRows(call);
  if (rows !== undefined) return toRows(rows, budget);
  return acceptedArrow(call) === ARROW_FILE ? TO_FILE : TO_STREAM;
}

/**
 * Converts an Arrow answer to the form that the client accepts: rows as JSON if it accepts no Arrow; an IPC stream
 * becomes an IPC file if the client requests one, or requests nothing over REST, whose specification promises a file;
 * and a file of another server becomes a stream.
 */
export async function* negotiateRows(
  messages: AsyncIterable<Message>,
  call: Call,
  budget: ByteBudget,
): AsyncIterable<Message> {
  const bodyField = bodyFieldOf(call.method.output);
  if (bodyField === undefined) {
    yield* messages;
    return;
  }
  const { from, to, convert } = conversionFor(call, budget);
  const iterator = messages[Symbol.asyncIterator]();
  try {
    const first = await iterator.next();
    if (first.done) return;
    const body = bodyOf(first.value, bodyField);
    if (!from.includes(body?.contentType ?? "")) {
      yield first.value;
      yield* { [Symbol.asyncIterator]: () => iterator };
      return;
    }
    const bytes = chunks(first.value, iterator, bodyField);
    let context = (first.value as { context?: Record<string, string> }).context;
    for await (const data of converted(bytes, convert)) {
      yield withBody(call.method.output, bodyField, { contentType: to, data }, context);
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
