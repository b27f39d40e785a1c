import type { FastifyPluginCallback } from "fastify";
import { once } from "../../runtime/promises.ts";
import { refuseOtherMethods } from "./probes.ts";
import { compressFile, sendFile } from "./static-file.ts";

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
