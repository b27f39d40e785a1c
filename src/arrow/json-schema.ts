import { create } from "@bufbuild/protobuf";
import {
  type JsonArrowDataType,
  JsonArrowDataTypeSchema,
  type JsonArrowField,
  JsonArrowFieldSchema,
  type JsonArrowSchema,
  JsonArrowSchemaSchema,
} from "../gen/lance/namespace/v1/schema_pb.ts";
import { LANCE_TYPE_NAMES } from "../namespace/type-names.ts";
import { ITEMS_PER_STEP, type Steps } from "../runtime/pace.ts";
import type { ArrowField, ArrowSchema, ArrowType } from "./schema.ts";

/**
 * Returns an Arrow schema in the vocabulary of the Lance Namespace specification, in steps.
 *
 * That vocabulary has no units and no time zones, and describes a dictionary or a view by the type of its values.
 * `logical_type` carries what it omits.
 */
export function* jsonSchemaSteps(schema: ArrowSchema): Steps<JsonArrowSchema> {
  const fields: JsonArrowField[] = [];
  for (const field of schema.fields) {
    fields.push(toJsonField(field));
    if (fields.length % ITEMS_PER_STEP === 0) yield;
  }
  return create(JsonArrowSchemaSchema, { fields, metadata: { ...schema.metadata } });
}

function toJsonField(field: ArrowField): JsonArrowField {
  return create(JsonArrowFieldSchema, {
    name: field.name,
    nullable: field.nullable,
    type: toJsonType(field),
    metadata: { ...field.metadata },
  });
}

function toJsonType(field: ArrowField): JsonArrowDataType {
  const length = typeLength(field.type);
  const logicalType = logicalTypeOf(field);
  return create(JsonArrowDataTypeSchema, {
    type: typeName(field.type),
    fields: field.children.map(toJsonField),
    ...(length !== undefined && { length: BigInt(length) }),
    ...(logicalType !== undefined && { logicalType }),
  });
}

function typeName(type: ArrowType): string {
  switch (type.name) {
    case "int":
      return `${type.signed ? "" : "u"}int${type.bits}`;
    case "float":
    case "decimal":
    case "date":
    case "time":
      return `${type.name}${type.bits}`;
    case "binary_view":
      return "binary";
    case "utf8_view":
      return "utf8";
    default:
      return type.name;
  }
}

const LANCE_NAMES = new Map(LANCE_TYPE_NAMES);

/** Returns the type in Lance's own words, if its name in the specification is incomplete. */
function logicalTypeOf({ type, dictionary }: ArrowField): string | undefined {
  if (dictionary !== undefined) {
    const { index, ordered } = dictionary;
    const value = unitedName(type) ?? LANCE_NAMES.get(typeName(type)) ?? typeName(type);
    return `dict:${value}:${typeName(index)}:${ordered}`;
  }
  return unitedName(type);
}

function unitedName(type: ArrowType): string | undefined {
  switch (type.name) {
    case "time":
    case "duration":
      return `${typeName(type)}:${type.unit}`;
    case "timestamp":
      return `timestamp:${type.unit}:${type.timezone || "-"}`;
    default:
      return undefined;
  }
}

function typeLength(type: ArrowType): number | undefined {
  switch (type.name) {
    case "fixed_size_binary":
      return type.width;
    case "fixed_size_list":
      return type.size;
    case "decimal":
      return type.precision * 1000 + type.scale;
    default:
      return undefined;
  }
}
