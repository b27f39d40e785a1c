import type { DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { ViewService } from "../gen/lance/gateway/v1/sql_view_pb.ts";
import type { Caller } from "./caller.ts";
import { toMessage } from "./input.ts";
import type { CallOptions } from "./types.ts";

const { createView, describeView, dropView } = ViewService.method;

type Call<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options: CallOptions) => Promise<MessageShape<O>>
    : never;

/** Calls of the operations on views that statements in SQL make. */
export interface ViewCalls {
  readonly createView: Call<typeof createView>;
  readonly describeView: Call<typeof describeView>;
  readonly dropView: Call<typeof dropView>;
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
  };
}
