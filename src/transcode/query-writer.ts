import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { type MessageRecord, restName } from "./descriptors.ts";
import { type EncodeJson, fieldReader, type JsonEncoders } from "./json-encode.ts";

/** Writes fields of a message as a query string without its question mark; it omits unset fields. */
export type QueryWriter = (message: MessageRecord) => string;

/** Whether a query string can hold a field: a scalar, an enum, a list of these, or a map. */
export function fitsQuery(field: DescField): boolean {
  return field.message === undefined || field.fieldKind === "map";
}

/** Compiles the writer of the query string for some fields of a message, as {@link createQueryBinder} reads it. */
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
    return query;
  };
}

function parameterWriter(field: DescField, encoders: JsonEncoders): (value: unknown) => string {
  const name = `${encodeURIComponent(restName(field))}=`;
  if (field.fieldKind === "map") {
    const encode = encoders.value(field);
    return (value) => name + encodeURIComponent(encode(value));
  }
  const text = textWriter(encoders.item(field));
  if (field.fieldKind !== "list") return (value) => name + text(value);
  return (list) => (list as unknown[]).map((item) => name + text(item)).join("&");
}

/** Longest text that a writer remembers, in characters. */
const MAX_REMEMBERED_LENGTH = 8;

/** Returns a writer without the quotes that JSON has around texts. It remembers the last short text: all calls write the same delimiter. */
function textWriter(encode: EncodeJson): (value: unknown) => string {
  let [last, lastWritten] = ["", ""];
  return (value) => {
    if (value === last && last !== "") return lastWritten;
    const json = encode(value);
    const written = encodeURIComponent(json.startsWith('"') ? (JSON.parse(json) as string) : json);
    if (typeof value === "string" && value.length <= MAX_REMEMBERED_LENGTH)
      [last, lastWritten] = [value, written];
    return written;
  };
}
