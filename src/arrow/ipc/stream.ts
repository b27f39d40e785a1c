import { FILE_MAGIC, parseMessageHead, readPrefix } from "./message.ts";

/** Marker that ends an IPC stream. */
export const END_OF_STREAM: Uint8Array = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0);

/** Messages of an IPC file that this process made, each with its prefix and its body. */
export interface FileMessages {
  readonly schema: Uint8Array;
  /** Metadata of the schema message, without its prefix. */
  readonly schemaMetadata: Uint8Array;
  /** Dictionaries and record batches, in order. */
  readonly data: readonly Uint8Array[];
  /** Number of rows of all batches. */
  readonly rows: number;
}

/** Returns the number of bytes of the dictionaries and record batches. */
export function dataBytes({ data }: FileMessages): number {
  return data.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/**
 * Takes an IPC file apart without copying: the bytes between its magic and its footer are a stream.
 *
 * Use it for files whose stream has its own schema, such as the engine's; uploads use `collectUpload`.
 */
export function splitIpcFile(file: Uint8Array): FileMessages {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  let position = FILE_MAGIC.byteLength + 2;
  let schema: Uint8Array | undefined;
  let schemaMetadata: Uint8Array | undefined;
  const data: Uint8Array[] = [];
  let rows = 0;
  for (;;) {
    const prefix = readPrefix(bytes, position);
    if (prefix === undefined) break;
    if (prefix.metadataLength === 0) {
      if (prefix.bytes === 8) break;
      // The engine pads the magic beyond eight bytes.
      position += 8;
      continue;
    }
    const metadataAt = position + prefix.bytes;
    const metadata = bytes.subarray(metadataAt, metadataAt + prefix.metadataLength);
    const head = parseMessageHead(metadata, position);
    const end = metadataAt + prefix.metadataLength + head.bodyLength;
    if (head.kind === "schema") {
      schema = bytes.subarray(position, end);
      schemaMetadata = metadata;
    } else {
      data.push(bytes.subarray(position, end));
      rows += head.rows;
    }
    position = end;
  }
  if (schema === undefined || schemaMetadata === undefined)
    throw new Error("the engine's result has no schema");
  return { schema, schemaMetadata, data, rows };
}
