import { readFile } from "node:fs/promises";
import type { UpstreamTransport } from "../../backends/rest/transport/transport.ts";
import type { UpstreamTls } from "../../backends/upstream-identity/identity.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { TlsFiles } from "../connections/properties.ts";
import { createFetchTransport, type Fetch } from "./fetch-transport.ts";

/** Bun and Deno have their own fetch and support Node's connection pools only partly. */
const IS_NODE = !("Bun" in globalThis || "Deno" in globalThis);

/** Opens a pool of connections. On platforms without one, requests use fetch, which supports no certificates. */
export async function openNodeTransport(uri: string, files: TlsFiles): Promise<UpstreamTransport> {
  if (IS_NODE) {
    const { createHttpTransport } = await import("../../backends/rest/transport/undici-transport.ts");
    try {
      return createHttpTransport({
        uri,
        tls: await readPem(files),
        // A program decides itself how long it waits, and how many calls it makes.
        maxWaiting: Number.POSITIVE_INFINITY,
        timeLimits: { firstByteMs: 0, idleMs: 0 },
      });
    } catch (cause) {
      if (cause instanceof LanceError) throw cause;
      throw new LanceError("InvalidInput", (cause as Error).message, { cause });
    }
  }
  if (Object.keys(files).length > 0) {
    throw new LanceError("Unsupported", "certificates for a connection by REST need Node");
  }
  return createFetchTransport(uri, (url, init) => fetch(url, init));
}

/** Returns fetch without time limits; Node's own gives up after 300 s without the head or a piece of an answer. */
export async function openNodeFetch(): Promise<Fetch> {
  if (!IS_NODE) return (url, init) => fetch(url, init);
  const undici = await import("undici");
  const dispatcher = new undici.Agent({ headersTimeout: 0, bodyTimeout: 0 });
  const send = undici.fetch as unknown as (url: string, init: object) => Promise<Response>;
  return (url, init) => send(url, { ...init, dispatcher });
}

/** Reads the files of a TLS connection. */
export async function readPem(files: TlsFiles): Promise<UpstreamTls> {
  const texts: Record<string, string> = {};
  for (const [name, file] of Object.entries(files)) {
    texts[name] = await readFile(file, "utf8").catch((cause: Error) => {
      throw new LanceError("InvalidInput", `cannot read ${file}: ${cause.message}`, { cause });
    });
  }
  return texts;
}
