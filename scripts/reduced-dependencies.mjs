// Reduces the locked dependencies to those of serving: for the first start of a clone, and for the image.
// Plain JavaScript for Node 20, with nothing but its own modules: it runs before anything is installed.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Libraries that no code of the gateway reaches: those of the engine's embedding functions, which have 500 MB, and Vite's
 * minifier of styles, which the console's build leaves alone.
 */
const UNUSED_PACKAGES = ["@huggingface/transformers", "openai", "lightningcss"];

/** Parts of packages that the gateway does not load: forms for other surroundings than Node, sources and tests. */
const UNUSED_FOLDERS = [
  "@cedar-policy/cedar-wasm/esm",
  "@cedar-policy/cedar-wasm/web",
  "apache-arrow/src",
  "bintrees/test",
  "fastify/test",
  "parquet-wasm/bundler",
  "parquet-wasm/esm",
  "zod/src",
];

/**
 * Reduces the manifest and the lock of a folder to the dependencies of the program and some packages more, whose versions
 * are those of the project's development. `npm ci --omit=dev` then installs them.
 *
 * @param names the packages more.
 */
export function reduceDependencies(folder, names) {
  rewrite(join(folder, "package.json"), (manifest) => {
    for (const name of names) manifest.dependencies[name] = manifest.devDependencies[name];
    for (const key of ["devDependencies", "peerDependencies", "peerDependenciesMeta", "scripts"])
      delete manifest[key];
  });
  rewrite(join(folder, "package-lock.json"), ({ packages }) => {
    for (const { dependencies = {}, optionalDependencies = {} } of Object.values(packages)) {
      for (const name of UNUSED_PACKAGES) {
        delete dependencies[name];
        delete optionalDependencies[name];
      }
    }
  });
}

/** Removes what the program does not load of the packages that are installed in a folder, source maps included. */
export function removeUnusedFiles(folder) {
  const modules = join(folder, "node_modules");
  for (const path of UNUSED_FOLDERS) rmSync(join(modules, path), { recursive: true, force: true });
  for (const path of readdirSync(modules, { recursive: true })) {
    if (path.endsWith(".map")) rmSync(join(modules, path), { force: true });
  }
}

function rewrite(file, change) {
  const content = JSON.parse(readFileSync(file, "utf8"));
  change(content);
  writeFileSync(file, JSON.stringify(content));
}
