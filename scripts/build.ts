// Makes dist from src, for the package: declarations of each module, and code that is joined, because each module that Node loads
// costs time and memory (docs/adr/0104).
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");
rmSync(join(root, "dist"), { recursive: true, force: true });

const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
const { status } = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], {
  cwd: root,
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);

/** Modules that the package exports, and those that Node starts. */
const ENTRIES = [
  "src/index.ts",
  "src/gateway/fastify-plugin.ts",
  "src/client/index.ts",
  "src/client/browser.ts",
  "src/cli/main.ts",
  "src/cli/workers/worker-main.ts",
];

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: ENTRIES,
  outbase: "src",
  outdir: "dist",
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
for (const { path, text } of outputFiles) {
  const depth = path.slice(root.length + 1).split(sep).length;
  if (depth !== 3 && /\bimport\.meta\.(?:url|dirname)\b/.test(text))
    throw new Error(`${path} would look for files of the package in a wrong folder`);
  // The bundler gives a class that names itself another name, which logs and stacks would show.
  if (text.includes("class _LanceError")) throw new Error("logs would call a LanceError something else");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

// Files for browsers, which are served as they are.
const page = join("openapi", "page");
cpSync(join(root, "src", page), join(root, "dist", page), { recursive: true });
