import { create } from "@bufbuild/protobuf";
import { parseFieldPath } from "../../arrow/field-path.ts";
import { type QueryTableRequest, QueryTableRequestSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import type { JsonArrowDataType, JsonArrowField } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { DEFAULT_SEARCH_ROWS, isSearch } from "../../namespace/search-rows.ts";
import { type Others, onlyFor, type Step } from "../call/interceptor.ts";

const { countTableRows } = LanceNamespaceService.method;

/**
 * Bounds the rows of a query; it refuses one that may have more with InvalidInput, before it begins. A query whose `k` does not say so
 * has its rows counted: a scan those that meet its condition, a search those of the table. Several vectors are several searches, unless
 * the column has lists of vectors.
 *
 * The refusal is not Throttling, which clients repeat.
 */
export function limitQueryRows(max: number): Step {
  const limit: Step = async (call, request, next, others) => {
    const message = request.message as QueryTableRequest;
    const most = mostOf(message);
    const vectors = message.vector?.multiVector.length ?? 0;
    if (most * Math.max(1, vectors) <= max) return next(call, request);
    const searches = vectors > 1 && !(await searchesLists(call, message, others)) ? vectors : 1;
    if (most * searches <= max) return next(call, request);
    const rows = await countRows(call, message, others);
    if (Math.min(most, rows) * searches <= max) return next(call, request);
    const found = Number.isFinite(rows)
      ? `may have ${Math.min(most, rows) * searches}`
      : "may have any number of";
    throw new LanceError(
      "InvalidInput",
      `a query may have ${max} rows, and this one ${found}; ask for fewer with k, or for a part with k and offset`,
      { limit: "query_rows" },
    );
  };
  return onlyFor(({ method }) => method.input.typeName === QueryTableRequestSchema.typeName, limit);
}

/** Returns the number of rows that a query asks for. */
function mostOf(query: QueryTableRequest): number {
  if (query.k !== undefined) return Number(query.k);
  return isSearch(query) ? DEFAULT_SEARCH_ROWS : Number.POSITIVE_INFINITY;
}

/** Returns the largest number of rows that a query without `k` can have; infinity if the backend cannot count. */
async function countRows(call: Call, query: QueryTableRequest, others: Others): Promise<number> {
  const { filter, offset = 0n } = query;
  const searches = isSearch(query);
  const { id, identifier, delimiter, branch, version } = query;
  const message = create(countTableRows.input, {
    ...{ id, identifier, branch, version, delimiter },
    ...(!searches && { predicate: filter }),
  });
  // The answer of the count is not that of the call.
  const counting = copyCall(call, {
    method: countTableRows,
    takes: undefined,
    validation: undefined,
    responseHeaders: {},
  } as const);
  try {
    const countAll = others("countTableRows");
    const { count } = await countAll(counting, { kind: "unary", operation: "countTableRows", message });
    return Math.max(0, Number(count) - (searches ? 0 : Number(offset)));
  } catch (error) {
    if (isLanceError(error, "Unsupported")) return Number.POSITIVE_INFINITY;
    throw error;
  }
}

const { describeTable } = LanceNamespaceService.method;

/**
 * Returns whether the vectors of a query are one search together, because the values of the column are lists of vectors. It asks the
 * backend for the schema; a backend that does not tell it searches for each vector.
 */
async function searchesLists(call: Call, query: QueryTableRequest, others: Others): Promise<boolean> {
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
