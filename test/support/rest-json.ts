import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { FieldBehavior, field_behavior } from "../../src/gen/google/api/field_behavior_pb.ts";
import { RestForm, rest_form, rest_name, rest_value } from "../../src/gen/lance/namespace/v1/options_pb.ts";
import { optionOf } from "../../src/namespace/option.ts";

/*
 * A second, plainer implementation of the REST API's JSON, with which the tests compare the gateway's codec. It walks
 * messages by reflection, and is strict where the gateway is tolerant.
 */

/** Converts a message to the JSON of the REST API. */
export function toRestJson(desc: DescMessage, message: Message): JsonValue {
  if (isWellKnown(desc)) return toJson(desc, message);
  const view = reflect(desc, message);
  const form = optionOf(desc, rest_form);
  if (form === RestForm.VALUE) return fieldToJson(view, desc.fields[0] as DescField);
  if (form === RestForm.TUPLE) return desc.fields.map((field) => fieldToJson(view, field));
  const set = desc.fields.filter((field) => view.isSet(field) || isRequired(field));
  return Object.fromEntries(set.map((field) => [restName(field), fieldToJson(view, field)]));
}

/** Whether the REST API always contains a field, even an empty one. */
export function isRequired(field: DescField): boolean {
  return optionOf(field, field_behavior).includes(FieldBehavior.REQUIRED);
}

/** Converts the value of one field to the JSON of the REST API; null for a field that is neither set nor required. */
export function fieldToJson(view: ReflectMessage, field: DescField): JsonValue {
  switch (field.fieldKind) {
    case "list":
      return [...view.get(field)].map((item) => itemToJson(field, item));
    case "map":
      return Object.fromEntries([...view.get(field)].map(([key, item]) => [key, itemToJson(field, item)]));
    default:
      return view.isSet(field) || isRequired(field) ? itemToJson(field, view.get(field)) : null;
  }
}

/** Returns the REST API's name of a field. */
export function restName(field: DescField): string {
  return optionOf(field, rest_name) || field.name;
}

/** Reads a message from the REST API's JSON; an unknown name fails the test. */
export function fromRestJson(desc: DescMessage, json: JsonValue): Message {
  if (isWellKnown(desc)) return fromJson(desc, json);
  const message = create(desc);
  const target = message as unknown as Record<string, unknown>;
  const form = optionOf(desc, rest_form);
  if (form === RestForm.VALUE || form === RestForm.TUPLE) {
    const values = form === RestForm.VALUE ? [json] : (json as JsonValue[]);
    for (const [index, field] of desc.fields.entries()) readField(target, field, values[index] ?? null);
    return message;
  }
  const byName = new Map(desc.fields.map((field) => [restName(field), field]));
  for (const [name, value] of Object.entries(json as Record<string, JsonValue>)) {
    const field = byName.get(name);
    if (field === undefined) throw new Error(`${desc.typeName} has no field ${name}`);
    readField(target, field, value);
  }
  return message;
}

function readField(target: Record<string, unknown>, field: DescField, json: JsonValue): void {
  if (json === null) return;
  if (field.oneof !== undefined) {
    target[field.oneof.localName] = { case: field.localName, value: itemFromJson(field, json) };
  } else if (field.fieldKind === "list") {
    target[field.localName] = (json as JsonValue[]).map((item) => itemFromJson(field, item));
  } else if (field.fieldKind === "map") {
    const entries = Object.entries(json as Record<string, JsonValue>);
    target[field.localName] = Object.fromEntries(
      entries.map(([key, item]) => [key, itemFromJson(field, item)]),
    );
  } else {
    target[field.localName] = itemFromJson(field, json);
  }
}

function itemToJson(field: DescField, value: unknown): JsonValue {
  if (field.message !== undefined) {
    return toRestJson(field.message, (value as ReflectMessage).message ?? (value as Message));
  }
  if (field.enum !== undefined) return enumToJson(field.enum, value as number);
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return value as JsonValue;
}

const WIDE = new Set<unknown>([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.SFIXED64]);

function itemFromJson(field: DescField, json: JsonValue): unknown {
  if (field.message !== undefined) return fromRestJson(field.message, json);
  if (field.enum !== undefined) return enumFromJson(field.enum, json);
  const type = "scalar" in field ? field.scalar : undefined;
  if (WIDE.has(type)) {
    if (!Number.isInteger(json)) throw new Error(`${field} is not a JSON integer: ${JSON.stringify(json)}`);
    return BigInt(json as number);
  }
  return type === ScalarType.BYTES ? Buffer.from(json as string, "base64") : json;
}

/** Returns the REST API's spelling of an enum's value: PascalCase, unless an option overrides it. */
export function enumToJson(desc: DescEnum, number: number): string {
  const value = desc.value[number];
  if (value === undefined) throw new Error(`${desc.typeName} has no value ${number}`);
  const words = value.localName.toLowerCase().split("_");
  const pascal = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return optionOf(value, rest_value) || pascal;
}

function enumFromJson(desc: DescEnum, json: JsonValue): number {
  const found = desc.values.find((value) => enumToJson(desc, value.number) === json);
  if (found === undefined) throw new Error(`${desc.typeName} has no value ${JSON.stringify(json)}`);
  return found.number;
}

function isWellKnown(desc: DescMessage): boolean {
  return desc.typeName.startsWith("google.protobuf.");
}
