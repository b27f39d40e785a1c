/** Messages of the operations: requests, answers, their parts, and the enums. */
export * from "../gen/lance/namespace/v1/branch_pb.ts";
export * from "../gen/lance/namespace/v1/common_pb.ts";
export * from "../gen/lance/namespace/v1/data_pb.ts";
export * from "../gen/lance/namespace/v1/index_pb.ts";
export * from "../gen/lance/namespace/v1/namespace_pb.ts";
export * from "../gen/lance/namespace/v1/query_pb.ts";
export * from "../gen/lance/namespace/v1/schema_pb.ts";
export * from "../gen/lance/namespace/v1/table_pb.ts";
export * from "../gen/lance/namespace/v1/tag_pb.ts";
export * from "../gen/lance/namespace/v1/transaction_pb.ts";
export * from "../gen/lance/namespace/v1/version_pb.ts";
export * from "../gen/lance/namespace/v1/view_pb.ts";
