import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** An object of the server. */
export interface StoredObject {
  readonly bytes: Buffer;
  readonly tag: string;
  readonly modified: Date;
}

/** A request as the server got it. */
export interface S3Request {
  /** For example `GET`, `LIST`, `PUT if absent`. */
  readonly kind: string;
  /** Key, or the prefix of a listing. */
  readonly key: string;
  readonly headers: IncomingMessage["headers"];
}

/** A server that speaks S3 as far as the engine and the gateway do, with its objects in memory. */
export interface S3Server {
  readonly port: number;
  /** How the gateway reaches the bucket `lance`. */
  readonly options: Readonly<Record<string, string>>;
  readonly objects: Map<string, StoredObject>;
  /** Requests since the last call. */
  take(): S3Request[];
  put(key: string, bytes: Uint8Array): void;
  /** Pause before each answer, in milliseconds. */
  delayMs: number;
  /** Answers a request in place of the server, if it returns true. Default: none. */
  intercept: ((request: S3Request, response: ServerResponse) => boolean) | undefined;
  close(): Promise<void>;
}

/** Name of the only bucket. */
export const S3_BUCKET = "lance";

/** Largest page of a listing. */
const PAGE = 1_000;

/** Starts a server on a free port of loopback. */
export async function startS3Server(): Promise<S3Server> {
  const objects = new Map<string, StoredObject>();
  const uploads = new Map<string, Map<number, Buffer>>();
  let seen: S3Request[] = [];
  let ids = 0;

  function put(key: string, bytes: Uint8Array): StoredObject {
    const digest = createHash("md5").update(bytes).digest("hex");
    const object = { bytes: Buffer.from(bytes), tag: `"${digest}"`, modified: new Date() };
    objects.set(key, object);
    return object;
  }

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? "", "http://server");
    const { method = "", headers } = incoming;
    const key = decodeURIComponent(url.pathname.split("/").slice(2).join("/"));
    const query = url.searchParams;
    const request = {
      kind: kindOf(method, query, headers),
      key: key || (query.get("prefix") ?? ""),
      headers,
    };
    seen.push(request);
    const body = await bodyOf(incoming);
    if (s3.delayMs > 0) await sleep(s3.delayMs);
    if (s3.intercept?.(request, response) === true) return;
    const refuse = (status: number, code: string) =>
      response
        .writeHead(status, { "content-type": "application/xml" })
        .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>said</Message></Error>`);
    const xml = (text: string) =>
      response
        .writeHead(200, { "content-type": "application/xml" })
        .end(`<?xml version="1.0" encoding="UTF-8"?>${text}`);
    const found = objects.get(key);
    switch (request.kind) {
      case "LIST":
        return void xml(listing(objects, query));
      case "DELETE MANY":
        for (const [, name = ""] of body.toString().matchAll(/<Key>(.*?)<\/Key>/g))
          objects.delete(unescaped(name));
        return void xml("<DeleteResult></DeleteResult>");
      case "CREATE UPLOAD": {
        ids += 1;
        const id = `upload-${ids}`;
        uploads.set(id, new Map());
        return void xml(
          `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
        );
      }
      case "PUT PART": {
        uploads.get(query.get("uploadId") ?? "")?.set(Number(query.get("partNumber")), body);
        return void response.writeHead(200, { etag: `"part-${query.get("partNumber")}"` }).end();
      }
      case "COMPLETE UPLOAD": {
        const parts = uploads.get(query.get("uploadId") ?? "") ?? new Map<number, Buffer>();
        const { tag } = put(key, Buffer.concat([...parts].sort(([a], [b]) => a - b).map(([, part]) => part)));
        return void xml(`<CompleteMultipartUploadResult><ETag>${tag}</ETag></CompleteMultipartUploadResult>`);
      }
      case "COPY": {
        const from = decodeURIComponent(String(headers["x-amz-copy-source"])).replace(/^\/?[^/]+\//, "");
        const source = objects.get(from);
        if (source === undefined) return void refuse(404, "NoSuchKey");
        return void xml(`<CopyObjectResult><ETag>${put(key, source.bytes).tag}</ETag></CopyObjectResult>`);
      }
      case "PUT if absent":
        if (found !== undefined) return void refuse(412, "PreconditionFailed");
        return void response.writeHead(200, { etag: put(key, body).tag }).end();
      case "PUT":
        if (headers["if-match"] !== undefined && found?.tag !== headers["if-match"])
          return void refuse(412, "PreconditionFailed");
        return void response.writeHead(200, { etag: put(key, body).tag }).end();
      case "DELETE":
        objects.delete(key);
        return void response.writeHead(204).end();
      case "GET":
      case "HEAD":
        if (found === undefined) return void refuse(404, "NoSuchKey");
        return sendObject(found, request, response);
      default:
        return void refuse(501, "NotImplemented");
    }
  }
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => response.destroy());
  }).listen(0, "127.0.0.1");
  server.keepAliveTimeout = 0;
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const s3: S3Server = {
    port,
    options: {
      aws_endpoint: `http://127.0.0.1:${port}`,
      aws_region: "us-east-1",
      aws_access_key_id: "s3-server",
      aws_secret_access_key: "not-a-real-secret",
      allow_http: "true",
    },
    objects,
    take() {
      const taken = seen;
      seen = [];
      return taken;
    },
    put: (key, bytes) => void put(key, bytes),
    delayMs: 0,
    intercept: undefined,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return s3;
}

function kindOf(method: string, query: URLSearchParams, headers: IncomingMessage["headers"]): string {
  if (query.has("list-type")) return "LIST";
  if (query.has("uploadId")) {
    if (method === "PUT") return "PUT PART";
    return method === "POST" ? "COMPLETE UPLOAD" : "ABORT UPLOAD";
  }
  if (query.has("uploads")) return "CREATE UPLOAD";
  if (query.has("delete")) return "DELETE MANY";
  if (headers["x-amz-copy-source"] !== undefined) return "COPY";
  if (headers["if-none-match"] === "*") return "PUT if absent";
  return method;
}

function sendObject(
  { bytes, tag, modified }: StoredObject,
  request: S3Request,
  response: ServerResponse,
): void {
  const headers: Record<string, string> = {
    etag: tag,
    "last-modified": modified.toUTCString(),
    "accept-ranges": "bytes",
    "content-type": "application/octet-stream",
  };
  const ifMatch = request.headers["if-match"];
  const isChanged = ifMatch !== undefined && ifMatch !== tag;
  if (isChanged || request.headers["if-none-match"] === tag)
    return void response.writeHead(isChanged ? 412 : 304, headers).end();
  const range = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? "");
  if (range === null) {
    response.writeHead(200, { ...headers, "content-length": bytes.length });
    return void response.end(request.kind === "HEAD" ? undefined : bytes);
  }
  const [, first = "", last = ""] = range;
  const start = first === "" ? Math.max(0, bytes.length - Number(last)) : Number(first);
  const end = first === "" || last === "" ? bytes.length : Math.min(bytes.length, Number(last) + 1);
  if (start >= bytes.length) {
    headers["content-range"] = `bytes */${bytes.length}`;
    return void response.writeHead(416, headers).end("<Error><Code>InvalidRange</Code></Error>");
  }
  headers["content-range"] = `bytes ${start}-${end - 1}/${bytes.length}`;
  response.writeHead(206, { ...headers, "content-length": end - start });
  response.end(request.kind === "HEAD" ? undefined : bytes.subarray(start, end));
}

function listing(objects: ReadonlyMap<string, StoredObject>, query: URLSearchParams): string {
  const [prefix, delimiter] = [query.get("prefix") ?? "", query.get("delimiter") ?? ""];
  const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
  const limit = Math.min(PAGE, Number(query.get("max-keys") ?? PAGE));
  const entries = new Set<string>();
  for (const key of [...objects.keys()].sort()) {
    if (!key.startsWith(prefix)) continue;
    const at = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
    entries.add(at < 0 ? key : key.slice(0, at + delimiter.length));
  }
  const rest = [...entries].filter((entry) => entry > after);
  const page = rest.slice(0, limit);
  const texts = page.map((entry) => {
    const object = objects.get(entry);
    if (object === undefined) return `<CommonPrefixes><Prefix>${escaped(entry)}</Prefix></CommonPrefixes>`;
    const { bytes, tag, modified } = object;
    return `<Contents><Key>${escaped(entry)}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>${escaped(tag)}</ETag><Size>${bytes.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
  });
  const more = rest.length > page.length;
  const next = more ? `<NextContinuationToken>${escaped(page.at(-1) ?? "")}</NextContinuationToken>` : "";
  return `<ListBucketResult><Name>${S3_BUCKET}</Name><Prefix>${escaped(prefix)}</Prefix><KeyCount>${page.length}</KeyCount><MaxKeys>${limit}</MaxKeys><IsTruncated>${more}</IsTruncated>${next}${texts.join("")}</ListBucketResult>`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string) => text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? char);
const unescaped = (text: string) =>
  Object.entries(ENTITIES).reduceRight((rest, [char, entity]) => rest.replaceAll(entity, char), text);

async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
