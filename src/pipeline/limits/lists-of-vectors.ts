import { create } from "@bufbuild/protobuf";
import { parseFieldPath } from "../../arrow/field-path.ts";
import type { QueryTableRequest } from "../../gen/lance/namespace/v1/query_pb.ts";
import type { JsonArrowDataType, JsonArrowField } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { Others } from "../call/interceptor.ts";

const { describeTable } = LanceNamespaceService.method;

/**
 * Returns whether the vectors of a query are one search together, because the values of the column are lists of vectors. It asks the
 * backend for the schema; a backend that does not tell it searches for each vector.
 */
export async function searchesLists(call: Call, query: QueryTableRequest, others: Others): Promise<boolean> {
  const { id, identifier, delimiter, branch, version, vectorColumn, vector } = query;
  const message = create(describeTable.input, {
    ...{ id, identifier, delimiter, branch, version },
    loadDetailedMetadata: true,
    vendCredentials: false,
  });
  // The answer of the description is not that of the call.
  const describing = copyCall(call, {
    method: describeTable,
    takes: undefined,
    validation: undefined,
    responseHeaders: {},
  } as const);
  try {
    const describe = others("describeTable");
    const { schema } = await describe(describing, { kind: "unary", operation: "describeTable", message });
    const [first] = vector?.multiVector ?? [];
    const dimension = BigInt(first?.values.length ?? 0);
    const columns = vectorColumn
      ? fieldsAt(schema?.fields ?? [], parseFieldPath(vectorColumn))
      : vectorFields(schema?.fields ?? [], dimension);
    return columns.length > 0 && columns.every(({ type }) => isList(type));
  } catch (error) {
    if (isLanceError(error, "Unsupported")) return false;
    throw error;
  }
}

/** Returns the fields to which names lead through structs. */
function fieldsAt(
  fields: readonly JsonArrowField[],
  [name, ...rest]: readonly string[],
): readonly JsonArrowField[] {
  const found = fields.filter((field) => field.name === name).slice(0, 1);
  if (rest.length === 0) return found;
  return found.flatMap(({ type }) => (type?.type === "struct" ? fieldsAt(type.fields, rest) : []));
}

/** Returns the fields of vectors of a dimension, and of lists of them, also those inside structs. */
function vectorFields(fields: readonly JsonArrowField[], dimension: bigint): readonly JsonArrowField[] {
  return fields.flatMap((field) => {
    if (field.type?.type === "struct") return vectorFields(field.type.fields, dimension);
    const vectors = isList(field.type) ? field.type?.fields[0]?.type : field.type;
    return vectors?.type === "fixed_size_list" && vectors.length === dimension ? [field] : [];
  });
}

function isList(type: JsonArrowDataType | undefined): boolean {
  return type?.type === "list" || type?.type === "large_list";
}
