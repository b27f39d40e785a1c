import type { DescField, DescMessage, ScalarType } from "@bufbuild/protobuf";
import { LanceError } from "../namespace/errors.ts";
import { checkPathValue, type TemplateVariable } from "../namespace/operations/template.ts";
import { type MessageRecord, oneofOf, restName } from "./descriptors.ts";
import { toInvalidInput } from "./field-error.ts";
import { hasValue, type JsonDecoders } from "./json/decode.ts";
import { parseJson } from "./json/parse.ts";
import { scalarFromText } from "./json/scalars.ts";

/** A parameter of a query string that belongs to a field. */
export interface QueryValue {
  readonly field: QueryField;
  readonly text: string;
}

/** A field that a query string can set. */
export interface QueryField {
  /** Name in the query string. */
  readonly name: string;
  readonly local: string;
  readonly oneof: string | undefined;
  readonly repeated: boolean;
  readonly decode: (text: string) => unknown;
}

/** Reads the query strings of a kind of request. */
export interface QueryBinder {
  /**
   * Returns the parameters that belong to fields, decoded from the form encoding; it ignores others.
   *
   * @throws LanceError InvalidInput for bad escapes.
   */
  parse(query: string): readonly QueryValue[];
  /**
   * Sets fields, replacing their values. Of several values for a field that is not repeated, the last one counts.
   *
   * @throws LanceError InvalidInput, naming the parameter.
   */
  apply(message: MessageRecord, values: readonly QueryValue[]): void;
}

/** Properties of the query strings of a kind of request. */
export interface QueryBinding {
  /** Local names of the fields that are bound elsewhere. */
  readonly excluded: ReadonlySet<string>;
  readonly decoders: JsonDecoders;
  /** Further names of parameters, each with the name of its field in REST. */
  readonly renamed: Readonly<Record<string, string>>;
}

const NONE: readonly QueryValue[] = [];

/**
 * Compiles the query binding of a message: its scalars and enums, repeated ones by repeated parameters, and maps as a
 * JSON object. A query cannot set messages.
 *
 * @throws Error for a renamed parameter without a field.
 */
export function createQueryBinder(
  message: DescMessage,
  { excluded, decoders, renamed }: QueryBinding,
): QueryBinder {
  const fields = new Map<string, QueryField>();
  for (const descriptor of message.fields) {
    const isMessage = descriptor.message !== undefined && descriptor.fieldKind !== "map";
    if (isMessage || excluded.has(descriptor.localName)) continue;
    const name = restName(descriptor);
    fields.set(name, {
      name,
      local: descriptor.localName,
      oneof: oneofOf(descriptor),
      repeated: descriptor.fieldKind === "list",
      decode:
        descriptor.fieldKind === "map"
          ? mapFromText(descriptor, decoders)
          : textDecoder(descriptor, decoders),
    });
  }
  for (const [also, name] of Object.entries(renamed)) {
    const field = fields.get(name);
    if (field === undefined) throw new Error(`${message.typeName} has no parameter "${name}"`);
    fields.set(also, field);
  }

  function parse(query: string): readonly QueryValue[] {
    let values: QueryValue[] | undefined;
    for (let start = 0; start < query.length; ) {
      const next = query.indexOf("&", start);
      const end = next === -1 ? query.length : next;
      const equals = query.indexOf("=", start);
      const nameEnd = equals === -1 || equals > end ? end : equals;
      const field = fields.get(decodeForm(query.slice(start, nameEnd), "the name of a query parameter"));
      if (field !== undefined) {
        const text = decodeForm(query.slice(nameEnd + 1, end), `query parameter "${field.name}"`);
        values ??= [];
        values.push({ field, text });
      }
      start = end + 1;
    }
    return values ?? NONE;
  }

  return { parse, apply };
}

/**
 * Returns the function that converts the text of a query parameter or a path variable to the value of a field, or of
 * its item.
 */
function textDecoder(field: DescField, decoders: JsonDecoders): (text: string) => unknown {
  const decode = decoders.item(field);
  if (field.enum !== undefined) return (text) => decode(text, 0);
  const type = field.scalar as ScalarType;
  return (text) => decode(scalarFromText(type, text), 0);
}

function mapFromText(field: DescField, decoders: JsonDecoders): (text: string) => unknown {
  const decode = decoders.field(field);
  const what = `query parameter "${restName(field)}"`;
  return (text) => decode(parseJson(text, what), 0);
}

function apply(message: MessageRecord, values: readonly QueryValue[]): void {
  const begun = new Set<QueryField>();
  for (const { field, text } of values) {
    try {
      const value = field.decode(text);
      if (field.oneof !== undefined) {
        message[field.oneof] = { case: field.local, value };
      } else if (!field.repeated) {
        message[field.local] = value;
      } else if (begun.has(field)) {
        (message[field.local] as unknown[]).push(value);
      } else {
        message[field.local] = [value];
        begun.add(field);
      }
    } catch (thrown) {
      throw toInvalidInput(thrown, "query parameter", `query parameter "${field.name}"`);
    }
  }
}

/**
 * Decodes the percent escapes of a part of a URL, once. A `+` stays a plus.
 *
 * @param what name of the text, for the error.
 * @throws LanceError InvalidInput for a bad escape, bytes that are not UTF-8, and characters outside ASCII.
 */
function decodePercent(text: string, what: string): string {
  let escaped = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x25) escaped = true;
    else if (code > 0x7e) throw new LanceError("InvalidInput", `${what} must be percent-encoded UTF-8`);
  }
  if (!escaped) return text;
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new LanceError("InvalidInput", `${what} must be percent-encoded UTF-8`, { cause });
  }
}

/** Decodes as {@link decodePercent}, with `+` as the form encoding's space. */
function decodeForm(text: string, what: string): string {
  return decodePercent(text.includes("+") ? text.replaceAll("+", " ") : text, what);
}

/** A field that a path sets. */
interface PathVariable {
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
