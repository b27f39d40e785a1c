import { type DescMethod, fromBinary, type Message } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { passedAnswer } from "../../namespace/messages/passed-answer.ts";
import { hasNested } from "../upstream-identity/nested-context.ts";

/** Reads the answer of an upstream. */
export type ReadAnswer = (bytes: Uint8Array) => Message;

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
