// Joins the modules of src, because each module that Node loads costs time and memory (docs/adr/0003).
import { readFileSync } from "node:fs";
import http from "node:http";
import { join, relative, sep } from "node:path";
import { build, type Plugin } from "esbuild";

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

/** Packages of many small modules that every start loads. A user's own copy works beside them: nothing depends on a class. */
const JOINED = new Set([
  "@bufbuild/protobuf",
  "@connectrpc/connect",
  "@connectrpc/connect-fastify",
  "@connectrpc/connect-node",
]);

/** Keeps packages outside, except the joined ones, whose copyright notices remain at the end of the file. */
const packages: Plugin = {
  name: "packages",
  setup({ onResolve, onLoad }) {
    onLoad({ filter: /[\\/]node_modules[\\/]@(?:bufbuild|connectrpc)[\\/].*\.js$/ }, ({ path }) => {
      const contents = readFileSync(path, "utf8").replaceAll(/(?:^\/\/.*\n)+/gm, (text) =>
        text.includes("Copyright") ? `/*!\n${text.replaceAll(/^\/\//gm, " *")} */\n` : text,
      );
      return { contents };
    });
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(path) ?? [];
      return kind === "entry-point" || JOINED.has(name ?? "") ? undefined : { path, external: true };
    });
  },
};

/**
 * Has modules get node:http without an import of theirs. An import reads all that Node's module exports, and so loads Node's undici, which
 * takes 30 ms and 16 MB, for classes of browsers that nothing here uses.
 */
const withoutUndici: Plugin = {
  name: "without-undici",
  setup({ onResolve, onLoad }) {
    const namespace = "node-http";
    onResolve({ filter: /^(?:node:)?http$/ }, () => ({ path: "node:http", namespace, sideEffects: false }));
    onLoad({ filter: /^/, namespace }, () => {
      const members = Object.entries(Object.getOwnPropertyDescriptors(http));
      const names = members.filter(([, { value }]) => value !== undefined).map(([name]) => name);
      const from = 'process.getBuiltinModule("node:http")';
      return {
        contents: `const http = ${from};\nexport default http;\nexport const { ${names.join(", ")} } = http;`,
      };
    });
  },
};

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
    plugins: [withoutUndici, packages],
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
