import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { BinaryReader } from "@bufbuild/protobuf/wire";

/** A span as a collector has received it. */
export interface ReceivedSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a span without a parent. */
  readonly parentId: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** A collector of traces, which takes OTLP over HTTP. */
export interface Collector {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Headers of the last request. */
  readonly headers: Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

/** Starts a collector. */
export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  let headers: Readonly<Record<string, unknown>> = {};
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      headers = request.headers;
      if (request.url === "/v1/traces") spans.push(...spansIn(body));
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    get headers() {
      return headers;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Fields of a message by their numbers, as bytes; others than bytes are left out. */
function fieldsOf(bytes: Uint8Array): Map<number, Uint8Array[]> {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, Uint8Array[]>();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    // Type 2 is bytes, texts and messages.
    if (type === 2) fields.set(number, [...(fields.get(number) ?? []), reader.bytes()]);
    else reader.skip(type);
  }
  return fields;
}

const all = (bytes: Uint8Array, number: number) => fieldsOf(bytes).get(number) ?? [];
const first = (bytes: Uint8Array, number: number) => all(bytes, number)[0] ?? new Uint8Array();
const textIn = (bytes: Uint8Array, number: number) => Buffer.from(first(bytes, number)).toString();
const hexIn = (bytes: Uint8Array, number: number) => Buffer.from(first(bytes, number)).toString("hex");

/** Reads an ExportTraceServiceRequest of opentelemetry.proto. */
function spansIn(body: Uint8Array): ReceivedSpan[] {
  return all(body, 1).flatMap((resource) => {
    const service = attributesIn(first(resource, 1), 1)["service.name"] ?? "";
    const spans = all(resource, 2).flatMap((scope) => all(scope, 2));
    return spans.map((span) => ({
      service,
      name: textIn(span, 5),
      traceId: hexIn(span, 1),
      spanId: hexIn(span, 2),
      parentId: hexIn(span, 4),
      attributes: attributesIn(span, 9),
    }));
  });
}

/** Returns the attributes whose values are texts. */
function attributesIn(bytes: Uint8Array, number: number): Record<string, string> {
  return Object.fromEntries(all(bytes, number).map((pair) => [textIn(pair, 1), textIn(first(pair, 2), 1)]));
}
