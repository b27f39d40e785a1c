// Builds src/console into dist/console: scripts, styles and the page, each also compressed. It fails if the whole is larger
// than its budget, or contains a package that is not listed here.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Plugin } from "vite";
import { BUNDLED } from "./bundled.ts";

/** Maximum size of what the first page loads, and of all that the console can load, compressed with gzip, in bytes. */
const FIRST_PAGE_BYTES = 200_000;
const WHOLE_BYTES = 400_000;

// Vite keeps what is for developers if a program that starts the build, such as Vitest, has set something else.
process.env["NODE_ENV"] = "production";

const root = join(import.meta.dirname, "..");
const source = join(root, "src", "console");
const target = join(root, "dist", "console");
const part = join(root, "dist", `console.${process.pid}.part`);

/** Modules of packages that the console has in a form of its own. */
const REPLACED: Readonly<Record<string, string>> = {
  // The page's policy forbids code from texts, which Arrow makes in a single place: its test for values that count as null.
  "apache-arrow/builder/valid.mjs": `export function createIsValidFunction(nulls) {
    const found = new Set(nulls);
    return (value) => !found.has(value);
  }`,
  // Files are imported as a whole, and only conditions on rows need these functions.
  "hyparquet/src/bloom.js": `const none = () => undefined;
  export { none as bloomEligibleColumns, none as readBloomFilter };`,
  "hyparquet/src/filter.js": `const [none, columns] = [() => undefined, () => []];
  export { none as canSkipRowGroup, none as filterPageRanges, none as matchFilter };
  export { columns as columnsNeededForFilter, columns as pathsNeededForFilter };`,
};

const replacedModules: Plugin = {
  name: "replaced-modules",
  // The writer of Parquet has a reader of its own, most of which is left out by itself.
  load: (id) =>
    id.includes("/node_modules/hyparquet-writer/")
      ? undefined
      : Object.entries(REPLACED).find(([path]) => id.endsWith(`/node_modules/${path}`))?.[1],
};

const noCodeFromTexts: Plugin = {
  name: "no-code-from-texts",
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      const code = chunk.type === "chunk" ? chunk.code : "";
      if (/\bnew Function\(|[^.\w]eval\(/.test(code))
        throw new Error(`${chunk.fileName} makes code from texts`);
    }
  },
};

/** Scripts that every page loads, which are known once they are built. */
const firstScripts = new Set<string>();

const firstPage: Plugin = {
  name: "first-page",
  generateBundle(_options, bundle) {
    const add = (file: string) => {
      const chunk = bundle[file];
      if (chunk?.type !== "chunk" || firstScripts.has(file)) return;
      firstScripts.add(file);
      chunk.imports.forEach(add);
    };
    for (const [file, chunk] of Object.entries(bundle)) {
      if (chunk.type !== "chunk" || chunk.name !== "page") continue;
      add(file);
      // The page loads the application as soon as it is there.
      chunk.dynamicImports.forEach(add);
    }
  },
};

/** Fails on packages whose licences and versions nothing lists, and on modules of Node. */
const listedPackages: Plugin = {
  name: "listed-packages",
  generateBundle(_options, bundle) {
    const modules = Object.values(bundle).flatMap((chunk) =>
      chunk.type === "chunk" ? Object.keys(chunk.modules) : [],
    );
    const foreign = modules.filter(
      (id) => id.includes("__vite-browser-external") || !isListed(packageOf(id)),
    );
    if (foreign.length > 0) throw new Error(`the console must not contain ${foreign.join(", ")}`);
  },
};

/** Returns the package of a module; undefined for a module of the project. */
function packageOf(id: string): string | undefined {
  return /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
}

const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;

/** Whether a package comes with the gateway anyway, or is listed as part of the console. */
function isListed(name: string | undefined): boolean {
  if (name === undefined || BUNDLED.includes(name)) return true;
  const entry = lock.packages[`node_modules/${name}`];
  return entry !== undefined && entry.dev !== true;
}

await build({
  root: source,
  configFile: false,
  logLevel: "warn",
  // The page may be below any path.
  base: "./",
  publicDir: false,
  plugins: [replacedModules, noCodeFromTexts, listedPackages, firstPage],
  build: {
    outDir: part,
    emptyOutDir: true,
    target: "es2023",
    // The minifier is a package of 10 MB, which a first start would have to install, and saves no kilobyte.
    cssMinify: false,
    assetsInlineLimit: 0,
    // The function that preloads modules needs a document, which the worker does not have.
    modulePreload: false,
    reportCompressedSize: false,
    license: { fileName: "licences.md" },
    rolldownOptions: {
      checks: { pluginTimings: false },
      input: {
        page: join(source, "index.html"),
        convert: join(source, "import", "convert-worker.ts"),
        export: join(source, "export", "export-worker.ts"),
        map: join(source, "map", "map-worker.ts"),
      },
      // The page starts the workers by their names.
      output: {
        entryFileNames: ({ name }) => (name === "page" ? "assets/[name]-[hash].js" : "[name].js"),
      },
    },
  },
});

let [first, whole] = [0, 0];
for (const path of readdirSync(part, { recursive: true, encoding: "utf8" })) {
  if (![".html", ".js", ".css", ".svg"].includes(extname(path))) continue;
  const content = readFileSync(join(part, path));
  const zipped = gzipSync(content, { level: 9 });
  whole += zipped.byteLength;
  // Styles and pictures come with the page.
  if (extname(path) !== ".js" || firstScripts.has(path)) first += zipped.byteLength;
  writeFileSync(join(part, `${path}.gz`), zipped);
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(join(part, `${path}.br`), brotliCompressSync(content, { params }));
}
for (const [what, bytes, most] of [
  ["the first page of the console", first, FIRST_PAGE_BYTES],
  ["the console", whole, WHOLE_BYTES],
] as const) {
  if (bytes <= most) continue;
  rmSync(part, { recursive: true });
  throw new Error(`${what} has ${bytes} bytes compressed, more than ${most}`);
}

mkdirSync(join(root, "dist"), { recursive: true });
rmSync(target, { recursive: true, force: true });
renameSync(part, target);
console.log(`The console has ${whole} bytes, compressed with gzip, of which the first page loads ${first}.`);
