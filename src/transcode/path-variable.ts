import type { DescField } from "@bufbuild/protobuf";
import { LanceError } from "../namespace/errors.ts";
import { checkPathValue, type TemplateVariable } from "../namespace/operations/template.ts";
import { type MessageRecord, restName } from "./descriptors.ts";
import { toInvalidInput } from "./field-error.ts";
import { hasValue, type JsonDecoders } from "./json/decode.ts";
import { decodePercent, textDecoder } from "./query.ts";

/** A field that a path sets. */
export interface PathVariable {
  readonly field: DescField;
  /** Name of the field in JSON. */
  readonly name: string;
  /**
   * Sets the field from the path's segments, each decoded once.
   *
   * @param json the body's object, if the body is the whole message.
   * @throws LanceError InvalidInput if the segments do not fit the field, a segment consists of dots, or the body has
   *   another value.
   */
  apply(message: MessageRecord, segments: readonly string[], json: Record<string, unknown> | undefined): void;
}

/**
 * Compiles a path variable.
 *
 * @throws Error if the field is not a scalar or an enum outside a oneof.
 */
export function compileVariable(
  field: DescField,
  variable: TemplateVariable,
  decoders: JsonDecoders,
): PathVariable {
  if ((field.fieldKind !== "scalar" && field.fieldKind !== "enum") || field.oneof !== undefined) {
    throw new Error(`field "${field.name}" is not a plain scalar and cannot be in the path`);
  }
  const { start, end } = variable;
  const { localName } = field;
  const name = restName(field);
  const what = `"${name}" in the path`;
  const fromText = textDecoder(field, decoders);

  const joined = (segments: readonly string[], read: (segment: string) => string): string =>
    end === start + 1 ? read(segments[start] as string) : segments.slice(start, end).map(read).join("/");
  const plain = (segment: string) => decodePercent(segment, what);
  // A family of clients writes a space as "+", and a plus as "%2B".
  const plusAsSpace = (segment: string) => decodePercent(segment.replaceAll("+", " "), what);

  function decode(text: string): unknown {
    try {
      return fromText(text);
    } catch (thrown) {
      throw toInvalidInput(thrown, what, what);
    }
  }

  function apply(
    message: MessageRecord,
    segments: readonly string[],
    json: Record<string, unknown> | undefined,
  ): void {
    const text = joined(segments, plain);
    checkPathValue(text, name);
    const value = decode(text);
    if (json !== undefined && hasValue(json, name) && message[localName] !== value) {
      const given = message[localName];
      if (given === joined(segments, plusAsSpace)) return;
      throw new LanceError(
        "InvalidInput",
        `field "${name}": the request body says ${show(given)}, the route says ${show(value)}`,
      );
    }
    message[localName] = value;
  }

  return { field, name, apply };
}

function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
