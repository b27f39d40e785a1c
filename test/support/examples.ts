import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const ROOT = join(import.meta.dirname, "..", "..");

/** Sources of the package's modules, by the names under which examples import the built modules. */
const SOURCES: Readonly<Record<string, string>> = {
  "lance-gateway": "src/index.ts",
  "lance-gateway/client": "src/client/index.ts",
  "lance-gateway/fastify": "src/gateway/fastify-plugin.ts",
};

const { resolve } = createRequire(import.meta.url);

/** Copies an example into a folder so that it runs on the sources. @returns the path of the copy */
export async function copyExample(name: string, folder: string): Promise<string> {
  const source = await readFile(join(ROOT, "examples", name), "utf8");
  const file = join(folder, name);
  await writeFile(
    file,
    source.replaceAll(/(?<=from )"(\w[^":]*)"/g, (_, module: string) => {
      const path = SOURCES[module];
      return JSON.stringify(pathToFileURL(path === undefined ? resolve(module) : join(ROOT, path)).href);
    }),
  );
  return file;
}
