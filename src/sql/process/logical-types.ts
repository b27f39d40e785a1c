import duckdb from "@duckdb/node-bindings";
import type { SqlType } from "../column-types.ts";

/** Makes a type of DuckDB. */
export function logicalType(type: SqlType): duckdb.LogicalType {
  switch (type.id) {
    case "DECIMAL":
      return duckdb.create_decimal_type(type.width, type.scale);
    case "LIST":
      return duckdb.create_list_type(logicalType(type.child));
    case "ARRAY":
      return duckdb.create_array_type(logicalType(type.child), type.size);
    case "MAP":
      return duckdb.create_map_type(logicalType(type.key), logicalType(type.value));
    case "STRUCT":
      return duckdb.create_struct_type(type.types.map(logicalType), type.names);
    default:
      return duckdb.create_logical_type(duckdb.Type[type.id]);
  }
}
