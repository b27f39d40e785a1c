import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import type { LanceError } from "../../namespace/errors.ts";

/** Clients refuse trailers of more than 8 KiB or so; texts are cut to fit even when all of it is escaped. */
const MAX_MESSAGE_CHARACTERS = 512;
const MAX_DETAIL_CHARACTERS = 1024;

/** The trailers of a success. */
export const OK_TRAILERS: Readonly<Record<string, string>> = { "grpc-status": "0" };

/** The error detail that clients read the Lance code from; `instance` is the upstream's, or the request id. */
export function errorDetail(
  error: LanceError,
  requestId: string,
): MessageInitShape<typeof ErrorResponseSchema> {
  const { code, type, title, httpStatus } = error.entry;
  const detail = error.detail === undefined ? undefined : cut(error.detail, MAX_DETAIL_CHARACTERS);
  const text = cut(error.message, MAX_MESSAGE_CHARACTERS);
  return {
    code,
    error: text,
    type,
    title,
    status: httpStatus,
    instance: error.instance ?? requestId,
    ...(detail && { detail }),
  };
}

/** The trailers of a failure: status, message, details and the headers that the error asks for. */
export function errorTrailers(error: LanceError, requestId: string): Record<string, string> {
  const message = cut(error.message, MAX_MESSAGE_CHARACTERS);
  const code = error.entry.grpcCode;
  const detail = create(ErrorResponseSchema, errorDetail(error, requestId));
  const status = create(StatusSchema, { code, message, details: [anyPack(ErrorResponseSchema, detail)] });
  return {
    ...error.headers,
    "grpc-status": String(code),
    "grpc-message": encodeMessage(message),
    "grpc-status-details-bin": Buffer.from(toBinary(StatusSchema, status)).toString("base64"),
  };
}

/** A text as `grpc-message` has it: visible ASCII and spaces as they are, all other UTF-8 bytes and `%` escaped. */
export function encodeMessage(text: string): string {
  return text.toWellFormed().replaceAll(/[^ -$&-~]+/g, (run) => {
    return Buffer.from(run).toString("hex").toUpperCase().replaceAll(/../g, "%$&");
  });
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`;
}
