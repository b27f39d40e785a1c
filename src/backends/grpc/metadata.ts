import { Metadata } from "@grpc/grpc-js";

/** Names and values in turn as metadata; a name that ends in `-bin` has base64 as a header and bytes here. */
export function toMetadata(pairs: readonly string[]): Metadata {
  const metadata = new Metadata();
  for (let at = 0; at + 1 < pairs.length; at += 2) {
    const [name, value] = [pairs[at] as string, pairs[at + 1] as string];
    metadata.set(name, name.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  }
  return metadata;
}
