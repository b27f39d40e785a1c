import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { FieldBehavior, field_behavior } from "../gen/google/api/field_behavior_pb.ts";
import { type RestForm, rest_form, rest_name } from "../gen/lance/namespace/v1/options_pb.ts";
import { optionOf } from "../namespace/option.ts";

/** A message as it is at run time: a plain object by local field names. */
export type MessageRecord = Record<string, unknown>;

/** Type of a body other than JSON. */
export const HTTP_BODY = "google.api.HttpBody";

/** Returns the name of a field in the REST API's JSON and query strings. */
export function restName(field: DescField): string {
  return optionOf(field, rest_name) || field.name;
}

/** Whether a field is annotated as required. */
export function isRequired(field: DescField): boolean {
  return optionOf(field, field_behavior).includes(FieldBehavior.REQUIRED);
}

/** Whether an absent field equals one with its type's zero value. */
export function isImplicit(field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.IMPLICIT;
}

/** Returns the JSON form of a message. */
export function restForm(message: DescMessage): RestForm {
  return optionOf(message, rest_form);
}

/** Returns the local name of a field's oneof. */
export function oneofOf(field: DescField): string | undefined {
  return field.oneof?.localName;
}

/** Returns the only field of a message in the form of a value. */
export function valueField(message: DescMessage): DescField {
  const [field, ...others] = message.fields;
  if (field === undefined || others.length > 0) {
    throw new Error(`${message.typeName} is annotated as a value and must have exactly one field`);
  }
  return field;
}

/** Returns the fields of a message in the form of a tuple, in the order of their numbers. */
export function tupleFields(message: DescMessage): DescField[] {
  if (message.oneofs.length > 0) throw new Error(`${message.typeName} is a tuple and must not have a oneof`);
  return message.fields.toSorted((a, b) => a.number - b.number);
}

/** Refuses a message in which two fields share a name in JSON. */
export function checkRestNames(message: DescMessage): void {
  const names = new Set<string>();
  for (const field of message.fields) {
    const name = restName(field);
    if (names.has(name)) throw new Error(`${message.typeName} has two fields with the REST name "${name}"`);
    names.add(name);
  }
}
