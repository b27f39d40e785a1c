// Joins the modules of src, because each module that Node loads costs time and memory (docs/adr/0003).
import { join, relative, sep } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");

/** Modules that the package exports, and those that Node starts. */
const ENTRIES = [
  "src/index.ts",
  "src/gateway/fastify-plugin.ts",
  "src/client/index.ts",
  "src/client/browser.ts",
  "src/cli/main.ts",
  "src/cli/workers/worker-main.ts",
  "src/gateway/cache/cache-thread.ts",
  "src/sql/process/main.ts",
];

/** Returns the texts of the joined code, by their paths in a folder beside package.json. */
export async function joinedCode(): Promise<ReadonlyMap<string, string>> {
  const outdir = join(root, "dist");
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ENTRIES,
    outbase: "src",
    outdir,
    bundle: true,
    splitting: true,
    // As deep as the modules of a folder of src, which find files of the package by their own place.
    chunkNames: "chunks/[name]-[hash]",
    packages: "external",
    platform: "node",
    target: "node22.19",
    format: "esm",
    write: false,
  });
  const code = new Map(outputFiles.map(({ path, text }) => [relative(outdir, path), text]));
  for (const [path, text] of code) {
    if (path.split(sep).length !== 2 && /\bimport\.meta\.(?:url|dirname)\b/.test(text))
      throw new Error(`${path} would look for files of the package in a wrong folder`);
    // The bundler gives a class that names itself another name, which logs and stacks would show.
    if (text.includes("class _LanceError")) throw new Error("logs would call a LanceError something else");
  }
  return code;
}
