import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { mediaRanges } from "../../runtime/text.ts";
import type { RowsForm } from "../rows/json-rows.ts";

/** Media type of an Arrow IPC stream. */
export const ARROW_STREAM = "application/vnd.apache.arrow.stream";

/** Media type of an Arrow IPC file. */
export const ARROW_FILE = "application/vnd.apache.arrow.file";

/** First and last bytes of an Arrow IPC file: `ARROW1`. */
const MAGIC = [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31];

/** Whether bytes begin like an IPC file. */
export function isIpcFile(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, index) => bytes[index] === byte);
}

/** Media types of rows as JSON. */
export const ROW_TYPES: Readonly<Record<RowsForm, string>> = {
  array: "application/json",
  lines: "application/x-ndjson",
};

const ARROW_RANGES: ReadonlySet<string> = new Set([ARROW_STREAM, ARROW_FILE, "application/*", "*/*"]);

/** Agents of generated clients. They send `accept: application/json` with each call, also where they read Arrow. */
const GENERATED = /^(?:openapi-generator|swagger-codegen)\//i;

/**
 * Returns the form of JSON in which a client accepts rows; undefined for Arrow. Arrow it is wherever the client accepts
 * Arrow at all, in whatever order, and where a generated client names JSON alone (docs/rest-rows.md).
 */
export function acceptedRows({ accept, headers }: Pick<Call, "accept" | "headers">): RowsForm | undefined {
  if (accept === undefined || !/json/i.test(accept)) return undefined;
  const ranges = mediaRanges(accept).filter(({ weight }) => weight > 0);
  if (ranges.some(({ type }) => ARROW_RANGES.has(type))) return undefined;
  if (accept.trim() === ROW_TYPES.array && GENERATED.test(headers["user-agent"] ?? "")) return undefined;
  let best: { readonly form: RowsForm; readonly weight: number } | undefined;
  for (const { type, weight } of ranges)
    for (const form of ["array", "lines"] as const)
      if (type === ROW_TYPES[form] && weight > (best?.weight ?? 0)) best = { form, weight };
  return best?.form;
}

/**
 * Returns the form of Arrow that a client accepts: the first form that it names, and a stream for rows as JSON. Without one, the default is the file
 * in REST for queries, as the specification promises, and the stream elsewhere.
 */
export function acceptedArrow(call: Call): typeof ARROW_FILE | typeof ARROW_STREAM {
  const { accept = "", protocol, method } = call;
  if (acceptedRows(call) !== undefined) return ARROW_STREAM;
  const [stream, file] = [accept.indexOf(ARROW_STREAM), accept.indexOf(ARROW_FILE)];
  if (stream >= 0 && (file < 0 || stream < file)) return ARROW_STREAM;
  const isSpecified = method.parent.typeName === LanceNamespaceService.typeName;
  if (file >= 0 || (protocol === "rest" && isSpecified)) return ARROW_FILE;
  return ARROW_STREAM;
}
