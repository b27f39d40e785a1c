import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { type Coding, etagOf, type StaticFile } from "./static-file.ts";

/** Codings of a file's content, the smallest first, with the endings of their files. */
const CODINGS = { br: ".br", gzip: ".gz" } as const;

/** Files of the console, by path below its directory. */
export type ConsoleFiles = ReadonlyMap<string, StaticFile>;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".md": "text/markdown; charset=utf-8",
};

/** Names that the build derives from contents. */
const HASHED = /-[\w-]{8}\.\w+$/;

/** Name of the page itself. */
export const PAGE = "index.html";

/**
 * Returns the function that reads the built console into memory, once it is there; until then the function returns
 * undefined, because a build may be in progress.
 *
 * @param directory where the build is.
 */
export function createConsoleFiles(directory: string): () => Promise<ConsoleFiles | undefined> {
  let reading: Promise<ConsoleFiles | undefined> | undefined;
  return async () => {
    reading ??= readAll(directory).catch(() => undefined);
    const files = await reading;
    if (!files?.has(PAGE)) reading = undefined;
    return reading && files;
  };
}

async function readAll(directory: string): Promise<ConsoleFiles> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1));
  const contents = new Map(
    await Promise.all(paths.map(async (path) => [path, await readFile(join(directory, path))] as const)),
  );
  const files = new Map<string, StaticFile>();
  for (const [path, content] of contents) {
    const type = TYPES[extname(path)];
    if (type === undefined) continue;
    const coded = Object.entries(CODINGS).flatMap(([coding, ending]) => {
      const found = contents.get(path + ending);
      return found === undefined ? [] : [[coding as Coding, found] as const];
    });
    files.set(path, {
      type,
      etag: etagOf(content),
      isImmutable: HASHED.test(path),
      content,
      coded: new Map(coded),
    });
  }
  return files;
}
