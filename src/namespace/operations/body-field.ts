import type { DescMessage } from "@bufbuild/protobuf";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";

/** Returns the local name of the field that carries a body other than JSON; undefined if a message has none. */
export function bodyFieldOf(message: DescMessage): string | undefined {
  return message.fields.find((field) => field.message?.typeName === HttpBodySchema.typeName)?.localName;
}
