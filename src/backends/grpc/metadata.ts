import { Metadata } from "@grpc/grpc-js";
import { LanceError } from "../../namespace/errors.ts";
import { currentTraceParent } from "../../runtime/tracing.ts";

const NAME = /^[0-9a-z_.-]+$/;
const VALUE = /^[ -~]*$/;

/**
 * Converts names and values in turn to metadata; a name that ends in `-bin` has base64 as a header and bytes here.
 *
 * @throws LanceError InvalidInput for values that HTTP allows and gRPC does not. It omits the value, which may be a
 *   credential.
 */
export function toMetadata(pairs: readonly string[]): Metadata {
  const metadata = new Metadata();
  for (let at = 0; at + 1 < pairs.length; at += 2) {
    const [name, value] = [pairs[at] as string, pairs[at + 1] as string];
    if (!NAME.test(name))
      throw new LanceError("InvalidInput", `header ${name} cannot be sent as gRPC metadata`);
    if (name.endsWith("-bin")) metadata.set(name, Buffer.from(value, "base64"));
    else if (VALUE.test(value)) metadata.set(name, value);
    else
      throw new LanceError(
        "InvalidInput",
        `header ${name} has a character that metadata of gRPC cannot have`,
      );
  }
  return metadata;
}

/** Returns metadata whose `traceparent` continues the current span; the given one if there is none. */
export function inTrace(metadata: Metadata): Metadata {
  const own = currentTraceParent();
  if (own === undefined) return metadata;
  const continued = metadata.clone();
  continued.set("traceparent", own);
  return continued;
}
