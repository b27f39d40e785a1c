import assert from "node:assert/strict";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { build } from "esbuild";
import { describe, it } from "vitest";

const ENTRY = join(import.meta.dirname, "..", "..", "src", "client", "browser.ts");

/** Maximum size of the code that a page loads before its first call, minified, in bytes. */
const MAX_ENTRY_BYTES = 320 * 1024;

describe("the client's bundle for browsers", () => {
  it("has no module of Node's in it, and loads Arrow only for rows", async () => {
    const { errors, metafile } = await build({
      entryPoints: [ENTRY],
      bundle: true,
      minify: true,
      splitting: true,
      write: false,
      metafile: true,
      format: "esm",
      platform: "browser",
      outdir: "out",
      logLevel: "silent",
    });
    assert.deepEqual(errors, []);
    const entry = Object.values(metafile.outputs).find(({ entryPoint }) =>
      entryPoint?.endsWith("browser.ts"),
    );
    assert.ok(entry !== undefined && entry.bytes < MAX_ENTRY_BYTES, `the entry has ${entry?.bytes} bytes`);
    assert.ok(!Object.keys(entry.inputs).some((input) => input.includes("apache-arrow")));
    const foreign = Object.keys(metafile.inputs).filter((input) =>
      /undici|grpc-js|pino|backends\/dir/.test(input),
    );
    assert.deepEqual(foreign, []);
  });

  it("runs where the globals of Node are missing", async () => {
    const { outputFiles } = await build({
      entryPoints: [ENTRY],
      bundle: true,
      write: false,
      format: "iife",
      globalName: "client",
      platform: "browser",
    });
    const { URL, TextEncoder, TextDecoder, AbortController, DOMException } = globalThis;
    const page = createContext({ URL, TextEncoder, TextDecoder, AbortController, DOMException });
    assert.equal(runInContext(`${outputFiles[0]?.text}; typeof client.connect`, page), "function");
  });
});
