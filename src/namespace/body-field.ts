import type { DescMessage } from "@bufbuild/protobuf";
import { HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";

/** The local name of the field that carries a body which is not JSON; undefined when a message has none. */
export function bodyFieldOf(message: DescMessage): string | undefined {
  return message.fields.find((field) => field.message?.typeName === HttpBodySchema.typeName)?.localName;
}
