import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import type { LanceError } from "../../namespace/errors.ts";

/** Clients reject trailers of more than about 8 KiB; texts are truncated to fit even if all of it is escaped. */
const MAX_MESSAGE_CHARACTERS = 512;
const MAX_DETAIL_CHARACTERS = 1024;
const MAX_INSTANCE_CHARACTERS = 256;

/** Trailers of a success. */
export const OK_TRAILERS: Readonly<Record<string, string>> = { "grpc-status": "0" };

/** A message with more information about an error than its code and its text. */
export interface ErrorDetail {
  readonly desc: DescMessage;
  readonly value: MessageInitShape<DescMessage>;
}

/** Lists the details of an error that clients get. */
export type ErrorDetails = (error: LanceError, requestId: string) => readonly ErrorDetail[];

/** Lists the detail from which clients read the Lance code. */
export const lanceDetails: ErrorDetails = (error, requestId) => [
  { desc: ErrorResponseSchema, value: errorResponse(error, requestId) },
];

/** Returns the detail of an error; its `instance` is the upstream's, or the request id. */
function errorResponse(error: LanceError, requestId: string): MessageInitShape<typeof ErrorResponseSchema> {
  const { code, name, type, title, httpStatus } = error.entry;
  const detail = error.detail === undefined ? undefined : cut(error.detail, MAX_DETAIL_CHARACTERS);
  const text = cut(error.message, MAX_MESSAGE_CHARACTERS);
  return {
    code,
    error: text,
    kind: name,
    type,
    title,
    status: httpStatus,
    instance: cut(error.instance ?? requestId, MAX_INSTANCE_CHARACTERS),
    ...(detail && { detail }),
  };
}

/** Returns the trailers of a failure: status, message, details, the request's id and the error's own headers. */
export function errorTrailers(
  error: LanceError,
  requestId: string,
  detailsOf: ErrorDetails = lanceDetails,
): Record<string, string> {
  const message = cut(error.message, MAX_MESSAGE_CHARACTERS);
  const code = error.entry.grpcCode;
  const details = detailsOf(error, requestId).map(({ desc, value }) => anyPack(desc, create(desc, value)));
  const status = create(StatusSchema, { code, message, details });
  return {
    ...error.headers,
    "x-request-id": requestId,
    "grpc-status": String(code),
    "grpc-message": encodeMessage(message),
    "grpc-status-details-bin": unpadded(toBinary(StatusSchema, status)),
  };
}

/** Encodes a text for `grpc-message`: visible ASCII and spaces unchanged, all other UTF-8 bytes and `%` escaped. */
export function encodeMessage(text: string): string {
  return text.toWellFormed().replaceAll(/[^ -$&-~]+/g, (run) => {
    return Buffer.from(run).toString("hex").toUpperCase().replaceAll(/../g, "%$&");
  });
}

/** Encodes bytes for metadata: every implementation must read base64 without padding, and some send no other. */
function unpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64").replace(/=+$/, "");
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`;
}
