import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createJsonEncoders } from "../../transcode/json/encode.ts";

/** Returns a message in the form of the REST API. */
export function jsonOf<D extends DescMessage>(schema: D, message: MessageShape<D>): unknown {
  return JSON.parse(createJsonEncoders().message(schema)(message));
}
