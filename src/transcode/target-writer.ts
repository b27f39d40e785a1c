import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { LanceError } from "../namespace/errors.ts";
import { checkPathValue, type Template } from "../namespace/operations/template.ts";
import { type MessageRecord, restName } from "./descriptors.ts";
import { type EncodeJson, fieldReader, type JsonEncoders } from "./json/encode.ts";

/**
 * Compiles the writer of a path from a template and the fields of a message.
 *
 * @param slashedPaths prefix of the paths that end with a slash.
 * @throws Error if the template needs more than a request has. The writer throws LanceError InvalidInput for a value
 *   that is empty, not Unicode, or a dot segment.
 */
export function createPathWriter(
  template: Template,
  message: DescMessage,
  slashedPaths: string | undefined,
): (request: MessageRecord) => string {
  const parts: (string | { readonly local: string; readonly name: string })[] = [];
  let literal = "";
  for (const [index, segment] of template.segments.entries()) {
    if (typeof segment === "object") {
      literal += `/${segment.literal}`;
      continue;
    }
    const variable = template.variables.find(({ start, end }) => start === index && end === index + 1);
    const field = message.fields.find(({ name }) => name === variable?.field);
    if (field === undefined) throw new Error(`path template "${template.source}" cannot be filled`);
    parts.push(`${literal}/`, { local: field.localName, name: restName(field) });
    literal = "";
  }
  if (slashedPaths !== undefined && template.source.startsWith(slashedPaths)) literal += "/";
  parts.push(literal);

  return (request) => {
    let path = "";
    for (const part of parts) {
      path += typeof part === "string" ? part : escaped(String(request[part.local]), part.name);
    }
    return path;
  };
}

/** Most names: no dot, which a segment of dots needs, and nothing to escape but the delimiter. */
const USUAL = /^[\w$-]+$/;

function escaped(value: string, name: string): string {
  if (USUAL.test(value)) return value.replaceAll("$", "%24");
  if (value === "") throw new LanceError("InvalidInput", `field ${JSON.stringify(name)} must not be empty`);
  checkPathValue(value, name);
  try {
    return encodeURIComponent(value);
  } catch (cause) {
    throw new LanceError("InvalidInput", `field ${JSON.stringify(name)} must be well-formed Unicode`, {
      cause,
    });
  }
}

/** Writes fields of a message as a query string without its question mark; it omits unset fields. */
export type QueryWriter = (message: MessageRecord) => string;

/** Whether a query string can hold a field: a scalar, an enum, a list of these, or a map. */
export function fitsQuery(field: DescField): boolean {
  return field.message === undefined || field.fieldKind === "map";
}

/** Longest query string, in characters: no server takes longer ones, and escaping 16 MiB takes half a second. */
const MAX_LENGTH = 64 * 1024;

function checkLength(text: string): string {
  if (text.length <= MAX_LENGTH) return text;
  const limit = `the parameters of this call are in a URL at the upstream catalog, and may have ${MAX_LENGTH} characters`;
  throw new LanceError("InvalidInput", limit);
}

/**
 * Compiles the writer of the query string for some fields of a message, as {@link createQueryBinder} reads it. The writer throws
 * LanceError InvalidInput for a message whose query string would be too long.
 */
export function createQueryWriter(
  message: DescMessage,
  fields: readonly DescField[],
  encoders: JsonEncoders,
): QueryWriter {
  const writers = fields.map((field) => {
    const read = fieldReader(field, false);
    const write = parameterWriter(field, encoders);
    return (record: MessageRecord) => {
      const value = read(record);
      return value === undefined ? "" : write(value);
    };
  });
  if (fields.some((field) => field.parent !== message))
    throw new Error(`a field is not ${message.typeName}'s`);
  return (record) => {
    let query = "";
    for (const write of writers) {
      const parameter = write(record);
      if (parameter !== "") query += query === "" ? parameter : `&${parameter}`;
    }
    return checkLength(query);
  };
}

function parameterWriter(field: DescField, encoders: JsonEncoders): (value: unknown) => string {
  const name = `${encodeURIComponent(restName(field))}=`;
  if (field.fieldKind === "map") {
    const encode = encoders.value(field);
    return (value) => name + encodeURIComponent(checkLength(encode(value)));
  }
  const text = textWriter(encoders.item(field));
  if (field.fieldKind !== "list") return (value) => name + text(value);
  return (list) => {
    let written = "";
    for (const item of list as unknown[]) {
      written += written === "" ? name + text(item) : `&${name}${text(item)}`;
      checkLength(written);
    }
    return written;
  };
}

/** Longest text that a writer remembers, in characters. */
const MAX_REMEMBERED_LENGTH = 8;

/** Returns a writer without the quotes that JSON has around texts. It remembers the last short text: all calls write the same delimiter. */
function textWriter(encode: EncodeJson): (value: unknown) => string {
  let [last, lastWritten] = ["", ""];
  return (value) => {
    if (value === last && last !== "") return lastWritten;
    const json = checkLength(encode(value));
    const written = encodeURIComponent(json.startsWith('"') ? (JSON.parse(json) as string) : json);
    if (typeof value === "string" && value.length <= MAX_REMEMBERED_LENGTH)
      [last, lastWritten] = [value, written];
    return written;
  };
}
