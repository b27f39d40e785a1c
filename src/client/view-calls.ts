import type { DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { LanceDbService } from "../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../gen/lance/gateway/v1/sql_view_pb.ts";
import type { Caller } from "./caller.ts";
import { toMessage } from "./input.ts";
import type { CallOptions } from "./types.ts";

const { createView, describeView, dropView } = ViewService.method;
const { describeMaterializedView, listMaterializedViews, dropMaterializedView, describeJob } =
  LanceDbService.method;

type Call<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options: CallOptions) => Promise<MessageShape<O>>
    : never;

/** Calls of the operations on views that statements in SQL make. */
export interface ViewCalls {
  readonly createView: Call<typeof createView>;
  readonly describeView: Call<typeof describeView>;
  readonly dropView: Call<typeof dropView>;
  readonly describeMaterializedView: Call<typeof describeMaterializedView>;
  readonly listMaterializedViews: Call<typeof listMaterializedViews>;
  readonly dropMaterializedView: Call<typeof dropMaterializedView>;
  /** Describes the job that fills a materialized view. */
  readonly describeJob: Call<typeof describeJob>;
}

/** Returns the calls by a caller. */
export function viewCalls(caller: Caller): ViewCalls {
  const callOf =
    (method: DescMethodUnary) =>
    (request: object, options: CallOptions): Promise<unknown> =>
      caller.unary(method, toMessage(method.input, request), options);
  return {
    createView: callOf(createView) as ViewCalls["createView"],
    describeView: callOf(describeView) as ViewCalls["describeView"],
    dropView: callOf(dropView) as ViewCalls["dropView"],
    describeMaterializedView: callOf(describeMaterializedView) as ViewCalls["describeMaterializedView"],
    listMaterializedViews: callOf(listMaterializedViews) as ViewCalls["listMaterializedViews"],
    dropMaterializedView: callOf(dropMaterializedView) as ViewCalls["dropMaterializedView"],
    describeJob: callOf(describeJob) as ViewCalls["describeJob"],
  };
}
