import type { DataType, Field, Schema } from "apache-arrow";
import type { FileMetaData, SchemaElement } from "hyparquet";

type Arrow = typeof import("apache-arrow");

/** Entry in which writers of Arrow keep the schema that the rows had. */
const ARROW_SCHEMA = "ARROW:schema";

/**
 * Returns the Arrow schema of a Parquet file: the one that its writer kept, or the one that its columns have.
 *
 * @throws Error for types that cannot be converted here.
 */
export function arrowSchemaOf(arrow: Arrow, metadata: FileMetaData): Schema {
  const kept = metadata.key_value_metadata?.find(({ key }) => key === ARROW_SCHEMA)?.value;
  const fields = kept === undefined ? fieldsOf(arrow, metadata.schema) : keptFields(arrow, kept);
  const odd = fields.find(({ type }) => !isConvertible(arrow, type));
  if (odd === undefined) return new arrow.Schema(fields);
  throw new Error(
    `column “${odd.name}” is ${odd.type}, which the console cannot convert; “lance-gateway import” can`,
  );
}

function keptFields(arrow: Arrow, base64: string): Field[] {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const { fields } = arrow.tableFromIPC(bytes).schema;
  // Values that are kept once become values like others.
  return fields.map((field) =>
    arrow.DataType.isDictionary(field.type) ? field.clone({ type: field.type.valueType }) : field,
  );
}

function isConvertible({ DataType: Is }: Arrow, type: DataType): boolean {
  if (Is.isDecimal(type) || Is.isMap(type) || Is.isUnion(type) || Is.isInterval(type)) return false;
  return type.children?.every((child: Field) => isPlain(Is, child.type)) ?? true;
}

/** Times inside lists and groups would lose digits. */
function isPlain(Is: Arrow["DataType"], type: DataType): boolean {
  if (Is.isTimestamp(type) || Is.isDecimal(type) || Is.isMap(type) || Is.isDictionary(type)) return false;
  return type.children?.every((child: Field) => isPlain(Is, child.type)) ?? true;
}

function fieldsOf(arrow: Arrow, [root, ...elements]: readonly SchemaElement[]): Field[] {
  if (root?.num_children !== elements.length)
    throw new Error(
      "the file has nested columns without a schema of Arrow; “lance-gateway import” can read it",
    );
  return elements.map(
    (element) =>
      new arrow.Field(element.name, typeOf(arrow, element), element.repetition_type !== "REQUIRED"),
  );
}

function typeOf(arrow: Arrow, element: SchemaElement): DataType {
  const { type, converted_type: converted, logical_type: logical } = element;
  switch (type) {
    case "BOOLEAN":
      return new arrow.Bool();
    case "INT32":
      return converted === "DATE" || logical?.type === "DATE" ? new arrow.DateDay() : new arrow.Int32();
    case "INT64":
      return logical?.type === "TIMESTAMP" || converted?.startsWith("TIMESTAMP")
        ? new arrow.TimestampMicrosecond()
        : new arrow.Int64();
    case "INT96":
      return new arrow.TimestampNanosecond();
    case "FLOAT":
      return new arrow.Float32();
    case "DOUBLE":
      return new arrow.Float64();
    default:
      return converted === "UTF8" || logical?.type === "STRING" ? new arrow.Utf8() : new arrow.Binary();
  }
}
