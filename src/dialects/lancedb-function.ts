import { LanceError } from "../namespace/errors.ts";
import { isJsonObject } from "../runtime/text/json.ts";

/** The kind of virtual columns that the gateway computes by a function which CreateFunction has stored. */
const STORED_FUNCTION = "lancedb_function";

/**
 * Reads columns that a function computes: the clients send the function beside empty columns, and the specification has a function in each
 * column.
 *
 * @throws LanceError InvalidInput
 */
export function readFunctionColumns(json: unknown): unknown {
  if (!isJsonObject(json) || !isJsonObject(json["function"])) return json;
  const { function: own, new_columns: columns, ...rest } = json;
  const { application, outputs, output_schema: schema } = own as Record<string, unknown>;
  const fields = isJsonObject(schema) ? schema["fields"] : undefined;
  if (!isJsonObject(application) || !isJsonObject(application["function"]) || !Array.isArray(columns))
    throw malformed();
  const { name, version, manifest_digest: image } = application["function"] as Record<string, unknown>;
  const inputs = Array.isArray(application["inputs"]) ? application["inputs"] : [];
  const listOf = (value: unknown) => (Array.isArray(value) ? value.filter(isJsonObject) : []);
  const entries = columns.map((column) => {
    const own = isJsonObject(column) ? String(column["name"]) : "";
    const output = listOf(outputs).find((each) => each["output_name"] === own);
    const field = listOf(fields).find((each) => each["name"] === own);
    const target = {
      column: own,
      struct_field: output?.["result_field"] ?? "$value",
      data_type: field?.["type"] ?? {},
      nullable: true,
    };
    const virtual = {
      input_columns: listOf(inputs).map(({ value }) => (isJsonObject(value) ? String(value["path"]) : "")),
      outputs: [target],
      image: String(image),
      udf: "",
      udf_name: String(name),
      udf_version: String(version),
      udf_backend: STORED_FUNCTION,
      manifest: JSON.stringify(application),
    };
    return { name: own, virtual_column: virtual };
  });
  return { ...rest, new_columns: entries };
}

function malformed(): LanceError {
  return new LanceError("InvalidInput", "function must have an application of a function");
}
