import type { DescMessage, Message } from "@bufbuild/protobuf";

const BODY: unique symbol = Symbol("body");

/** Forms of an answer that passes through, as a wire sends it: JSON in the specification's words, or a gRPC message. */
export interface PassedBodies {
  readonly json: string;
  readonly binary: Uint8Array;
}

/** An answer that goes to the client as the upstream sent it. It has none of its message's fields. */
interface PassedAnswer extends Message {
  readonly [BODY]: PassedBodies[keyof PassedBodies];
}

/** The parts of a call that decide. */
interface Passing {
  readonly takes?: keyof PassedBodies | undefined;
  readonly validation?: object;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly messageHeaders?: Readonly<Record<string, string>> | undefined;
}

/**
 * Whether an answer of a form may pass through: the wire takes the form, and neither a step of the pipeline, nor a cache,
 * nor a header that the answer's context repeats needs the message.
 */
export function mayPass(
  { takes, validation, responseHeaders, messageHeaders }: Passing,
  form: keyof PassedBodies,
): boolean {
  if (takes !== form || validation !== undefined) return false;
  for (const _name in responseHeaders) return false;
  for (const _name in messageHeaders) return false;
  return true;
}

/** Returns the answer that is the given body; only for a call that {@link mayPass}. */
export function passedAnswer({ typeName }: DescMessage, body: PassedBodies[keyof PassedBodies]): Message {
  const answer: PassedAnswer = { $typeName: typeName, [BODY]: body };
  return answer;
}

/** Returns the body of an answer that passes through; undefined for a message. The form is the one that the wire takes. */
export function passedBody<F extends keyof PassedBodies>(
  answer: Message,
  _form: F,
): PassedBodies[F] | undefined {
  return (answer as Partial<PassedAnswer>)[BODY] as PassedBodies[F] | undefined;
}
