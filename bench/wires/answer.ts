import { create } from "@bufbuild/protobuf";
import {
  type DescribeTableRequest,
  type DescribeTableResponse,
  DescribeTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/table_pb.ts";

/** The path of the rpc under load. */
export const DESCRIBE_PATH = "/lance.namespace.v1.LanceNamespaceService/DescribeTable";

/** Returns the answer of every server of this comparison, which each call creates again from memory. */
export function describeAnswer(request: DescribeTableRequest): DescribeTableResponse {
  return create(DescribeTableResponseSchema, {
    table: request.id.at(-1) ?? "t",
    namespace: request.id.slice(0, -1),
    location: "/data/1a2b3c4d_demo$events",
    properties: { owner: "bench" },
  });
}
