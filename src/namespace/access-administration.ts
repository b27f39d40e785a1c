import type { DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import type { AccessService } from "../gen/lance/gateway/v1/access_pb.ts";
import type { Call } from "./call/call.ts";

type Methods = (typeof AccessService)["method"];

/** The operations on keys, roles and policies, which the gateway answers itself. The pipeline has found that the caller is an owner. */
export type AccessAdministration = {
  readonly [K in keyof Methods]: Methods[K] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => Promise<MessageShape<O>>
    : never;
};
