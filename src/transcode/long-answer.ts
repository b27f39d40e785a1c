import { create, type Message } from "@bufbuild/protobuf";
import type { UpstreamForm } from "../dialects/upstream.ts";
import { passedAnswer } from "../namespace/messages/passed-answer.ts";
import { inSlices, type Steps, stepsOf } from "../runtime/pace.ts";
import { isWrapped, notJson, unreadable } from "./answer.ts";
import type { ClientBinding } from "./client-binding.ts";
import { type MessageRecord, restName } from "./descriptors.ts";
import { FieldError, InexactNumberError } from "./field-error.ts";
import { createJsonDecoders } from "./json/decode.ts";
import { parseJsonExactly } from "./json/parse.ts";
import { createStepDecoders, parseInParts, type StepDecoders } from "./json/parts.ts";

/** A long answer to a call. */
interface LongAnswer {
  readonly binding: ClientBinding;
  readonly body: Buffer;
  /** Declared type of the body. */
  readonly contentType: string | undefined;
  /** Whether a plain text may pass through instead of becoming a message. */
  readonly mayPass: boolean;
}

/** Size up to which an answer may pass through: whether it can is checked in a single step. */
const MAX_PASSED_BYTES = 4 * 1024 * 1024;

/** Bytes that are parsed exactly in a step: that costs up to a hundred times as much. */
const EXACT_PART_BYTES = 4 * 1024;

/** Creates the function that reads answers as {@link ClientBinding.read} does, in steps. They throw the same errors. */
export function createLongAnswerReader({ forms }: UpstreamForm): (answer: LongAnswer) => Steps<Message> {
  const decoders = createStepDecoders(createJsonDecoders(forms, true), forms);
  return function* ({ binding, body, contentType, mayPass }) {
    const { output } = binding.method;
    const { responseField } = binding;
    // A body that is a single text may be no JSON.
    if (responseField?.fieldKind === "scalar")
      return binding.read(body.toString("utf8"), contentType, mayPass);
    let json: unknown;
    try {
      json = yield* parseInParts(body);
    } catch (cause) {
      throw cause instanceof FieldError ? unreadable(cause) : notJson(contentType, cause);
    }
    if (mayPass && responseField === undefined && body.length <= MAX_PASSED_BYTES) {
      yield;
      if (binding.isPlain(json)) return passedAnswer(output, body.toString("utf8"));
    }
    try {
      return yield* messageOf(json, binding, decoders);
    } catch (thrown) {
      if (!(thrown instanceof InexactNumberError)) throw unreadable(thrown);
    }
    try {
      const exact = yield* parseInParts(body, { parse: parseJsonExactly, partBytes: EXACT_PART_BYTES });
      return yield* messageOf(exact, binding, decoders);
    } catch (thrown) {
      throw unreadable(thrown);
    }
  };
}

function* messageOf(
  json: unknown,
  { method, responseField }: ClientBinding,
  decoders: StepDecoders,
): Steps<Message> {
  if (responseField === undefined)
    return (yield* stepsOf(decoders.message(method.output)(json ?? {}, 0))) as Message;
  const message = create(method.output) as Message & MessageRecord;
  const value = isWrapped(json, restName(responseField), responseField)
    ? json[restName(responseField)]
    : json;
  if (value !== null && value !== undefined)
    message[responseField.localName] = yield* stepsOf(decoders.field(responseField)(value, 0));
  return message;
}

/** Size above which an answer is read in steps, in bytes: a shorter one takes a few milliseconds, whatever it contains. */
const LONG_BYTES = 64 * 1024;

/** Reads long answers with pauses for other calls. */
export interface LongReader {
  isLong(body: unknown): body is Buffer;
  read(answer: LongAnswer): Promise<Message>;
}

/** Creates the reader of long answers; apart from downloads, because browsers read those, and have no modules of Node. */
export function createLongReader(form: UpstreamForm): LongReader {
  const read = createLongAnswerReader(form);
  return {
    isLong: (body): body is Buffer => body instanceof Buffer && body.length > LONG_BYTES,
    read: (answer) => inSlices(read(answer)),
  };
}
