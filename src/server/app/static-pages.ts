import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { once } from "../../runtime/promises.ts";
import { refuseOtherMethods } from "./probes.ts";

/** The documents of the REST API. */
export interface ApiDocuments {
  /** Returns the text of the OpenAPI document. */
  json(): Promise<string>;
  /** Returns the page for people, or a file that it needs. */
  file(name: PageFile): Promise<string>;
}

/** A file of the page. */
export type PageFile = "index.html" | "docs.js" | "docs.css";

/** Files of the page by their paths, and their types. */
const FILES: Readonly<Record<string, readonly [PageFile, string]>> = {
  "/docs": ["index.html", "text/html; charset=utf-8"],
  "/docs/docs.js": ["docs.js", "text/javascript; charset=utf-8"],
  "/docs/docs.css": ["docs.css", "text/css; charset=utf-8"],
};

/** The page loads its own files and calls its own origin, and nothing else. */
const SAFE = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Serves the OpenAPI document of the REST API, and a page that shows it. */
export const documentPlugin: FastifyPluginCallback<{ documents: ApiDocuments }> = (
  app,
  { documents },
  done,
) => {
  /** Makes a file at its first use. */
  const fileOf = (type: string, read: () => Promise<string>) =>
    once(async () => compressFile(type, await read()));
  const json = fileOf("application/json; charset=utf-8", () => documents.json());
  app.get("/openapi.json", async (request, reply) => sendFile(await json(), request, reply));
  for (const [url, [name, type]] of Object.entries(FILES)) {
    const file = fileOf(type, () => documents.file(name));
    app.get(url, async (request, reply) => sendFile(await file(), request, reply.headers(SAFE)));
  }
  for (const url of ["/openapi.json", ...Object.keys(FILES)]) refuseOtherMethods(app, url);
  done();
};

/** Coding of a file's content. */
export type Coding = "br" | "gzip";

/** A file that is in memory, and that browsers keep. */
export interface StaticFile {
  readonly type: string;
  readonly etag: string;
  /** Whether another content would have another name. */
  readonly isImmutable: boolean;
  readonly content: Buffer;
  /** The content in other codings, the smallest first. */
  readonly coded: ReadonlyMap<Coding, Buffer>;
}

/** Names of immutable files have the hash of their content; the others are compared at each use. */
const CACHED = { true: "public, max-age=31536000, immutable", false: "no-cache" } as const;

/** Returns the entity tag of a content. */
export function etagOf(content: Buffer): string {
  return `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`;
}

/** Compresses a text in each coding, beside the event loop. */
async function compressFile(type: string, text: string): Promise<StaticFile> {
  const content = Buffer.from(text);
  // The highest quality takes a hundred times as long, for a tenth of the size.
  const params = { [constants.BROTLI_PARAM_QUALITY]: 6 };
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(content, { params }),
    promisify(gzip)(content),
  ]);
  const coded = new Map<Coding, Buffer>([
    ["br", br],
    ["gzip", gz],
  ]);
  return { type, etag: etagOf(content), isImmutable: false, content, coded };
}

/** Answers with a file in a coding that the client accepts, or with 304 if the client has it. */
export function sendFile(file: StaticFile, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { etag, isImmutable, type, coded, content } = file;
  reply.headers({ etag, "cache-control": CACHED[`${isImmutable}`], vary: "accept-encoding" });
  if (hasFile(request.headers["if-none-match"], etag)) return reply.code(304).send();
  const accepted = codingsOf(request.headers["accept-encoding"]);
  const coding = [...coded.keys()].find((each) => accepted.has(each));
  if (coding !== undefined) reply.header("content-encoding", coding);
  return reply.type(type).send((coding && coded.get(coding)) ?? content);
}

/** Whether a header has the entity tag, which a proxy that compresses makes weak. */
function hasFile(header = "", etag: string): boolean {
  const tags = header.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

/** Returns the codings that a header accepts, as RFC 9110 writes them. */
function codingsOf(header: string | string[] = ""): ReadonlySet<Coding> {
  const names = String(header)
    .toLowerCase()
    .split(",")
    .map((part) => part.split(";").map((text) => text.trim()))
    .filter(([, weight = ""]) => !/^q=0(?:\.0*)?$/.test(weight))
    .map(([name]) => name as Coding);
  return new Set(names);
}
