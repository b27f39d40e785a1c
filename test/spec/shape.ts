import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { RestForm } from "../../src/gen/lance/namespace/v1/options_pb.ts";
import { restForm, tupleFields, valueField } from "../../src/transcode/descriptors.ts";
import { enumEncoder } from "../../src/transcode/json/scalars.ts";
import { type Schema, schemaAt } from "./document.ts";

/** Form of a field or an item in JSON. */
export type Shape =
  | { readonly kind: "scalar"; readonly type: ScalarType }
  | { readonly kind: "enum"; readonly values: DescEnum }
  | { readonly kind: "message"; readonly message: DescMessage }
  | { readonly kind: "list"; readonly item: Shape }
  | { readonly kind: "tuple"; readonly items: readonly Shape[] }
  | { readonly kind: "map"; readonly value: Shape };

/** The shape of a field. */
export function shapeOf(field: DescField): Shape {
  const item: Shape =
    field.enum !== undefined
      ? { kind: "enum", values: field.enum }
      : field.message !== undefined
        ? shapeOfMessage(field.message)
        : { kind: "scalar", type: field.scalar as ScalarType };
  if (field.fieldKind === "list") return { kind: "list", item };
  if (field.fieldKind === "map") return { kind: "map", value: item };
  return item;
}

/** The shape of a message, which may be written as the value of its only field or as an array. */
export function shapeOfMessage(message: DescMessage): Shape {
  switch (restForm(message)) {
    case RestForm.VALUE:
      return shapeOf(valueField(message));
    case RestForm.TUPLE:
      return { kind: "tuple", items: tupleFields(message).map(shapeOf) };
    default:
      return { kind: "message", message };
  }
}

const INTEGERS: Readonly<Record<string, readonly ScalarType[]>> = {
  int64: [ScalarType.INT64],
  int32: [ScalarType.INT32, ScalarType.INT64],
  // Without a format, any width fits.
  "": [ScalarType.INT32, ScalarType.UINT32, ScalarType.INT64],
};
const NUMBERS: Readonly<Record<string, readonly ScalarType[]>> = {
  float: [ScalarType.FLOAT, ScalarType.DOUBLE],
  double: [ScalarType.DOUBLE],
  "": [ScalarType.FLOAT, ScalarType.DOUBLE],
};
const SCALARS: Readonly<Record<string, Readonly<Record<string, readonly ScalarType[]>>>> = {
  integer: INTEGERS,
  number: NUMBERS,
  boolean: { "": [ScalarType.BOOL] },
  string: { "": [ScalarType.STRING], byte: [ScalarType.BYTES], binary: [ScalarType.BYTES] },
};

/** Compares a message with its schema; the caller of {@link disagreements} provides it and compares each only once. */
export type CompareMessage = (schema: Schema, message: DescMessage) => void;

/** Returns the differences between a schema and a shape, in a few words each. */
export function disagreements(schema: Schema, shape: Shape, compareMessage: CompareMessage): string[] {
  switch (shape.kind) {
    case "scalar": {
      const types = SCALARS[schema.type ?? ""]?.[schema.format ?? ""] ?? [];
      return types.includes(shape.type) ? [] : [`${typeName(schema)} there, ${ScalarType[shape.type]} here`];
    }
    case "enum":
      return schema.type === "string"
        ? spellingDisagreements(schema, shape.values)
        : [`${typeName(schema)} there, an enum here`];
    case "list":
      return schema.type === "array" && schema.maxItems === undefined
        ? disagreements(schemaAt(schema.items), shape.item, compareMessage)
        : [`${typeName(schema)} there, a list here`];
    case "tuple":
      return schema.type === "array" &&
        schema.minItems === shape.items.length &&
        schema.maxItems === shape.items.length
        ? shape.items.flatMap((item) => disagreements(schemaAt(schema.items), item, compareMessage))
        : [`${typeName(schema)} there, ${shape.items.length} values here`];
    case "map":
      return typeof schema.additionalProperties === "object"
        ? disagreements(schemaAt(schema.additionalProperties), shape.value, compareMessage)
        : [`${typeName(schema)} there, a map here`];
    case "message":
      return messageDisagreements(schema, shape.message, compareMessage);
  }
}

function messageDisagreements(
  schema: Schema,
  message: DescMessage,
  compareMessage: CompareMessage,
): string[] {
  if (message.typeName === "google.protobuf.Timestamp") {
    return schema.format === "date-time" ? [] : [`${typeName(schema)} there, a time here`];
  }
  if (schema.type !== "object") return [`${typeName(schema)} there, ${message.name} here`];
  if (message.typeName.startsWith("google.protobuf.")) {
    return schema.properties === undefined ? [] : ["known properties there, any JSON here"];
  }
  if (schema.properties === undefined) return [`any object there, ${message.name} here`];
  compareMessage(schema, message);
  return [];
}

/** The spellings that a schema lists: as an enum, or as a list in its description. */
export function spellings(schema: Schema): string[] {
  if (schema.enum !== undefined) return [...schema.enum];
  return [...(schema.description ?? "").matchAll(/^ *[*-] +`?(\w+)`?(?: \(default\))?:/gm)].map(
    (found) => found[1] as string,
  );
}

function spellingDisagreements(schema: Schema, values: DescEnum): string[] {
  const write = enumEncoder(values);
  const ours = values.values
    .filter((value) => !value.name.endsWith("_UNSPECIFIED"))
    .map((value) => JSON.parse(write(value.number)) as string);
  // The document calls the case of most of them free; what it fixes by `enum` has to be written so.
  const fixed = schema.enum !== undefined;
  const normal = (names: readonly string[]) =>
    names
      .map((name) => (fixed ? name : name.toLowerCase()))
      .sort()
      .join(", ");
  const theirs = spellings(schema);
  if (theirs.length === 0) return ["no spellings there, an enum here"];
  return normal(theirs) === normal(ours) ? [] : [`${theirs.join(", ")} there, ${ours.join(", ")} here`];
}

function typeName(schema: Schema): string {
  return [schema.format, schema.type].filter((part) => part !== undefined).join(" ");
}
