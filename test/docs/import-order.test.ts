import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { assert, expect, test } from "vitest";

/** Folders with their parts, innermost first; `.` is the folder's own files. */
const PARTS = {
  "src/backends/dir/catalog": ["state", "manifest", "commits", "base", "."],
  "src/backends/dir/format": [".", "local", "files", "versions", "changes"],
  "src/pipeline": ["call", "limits", "policies", "records", "."],
  "src/server": ["requests", "connections", "tls", "port", "app", ".", "admin"],
};

test.each(Object.entries(PARTS))("the parts of %s import only those before them", (folder, parts) => {
  const wrong = importsIn(folder).filter(([from, to]) => {
    const [source, target] = [parts.indexOf(dirname(from)), parts.indexOf(dirname(to))];
    return source >= 0 && target > source;
  });
  expect(wrong).toEqual([]);
});

test.each(Object.entries(PARTS))("every part of %s has files", (folder, parts) => {
  const used = new Set(importsIn(folder).map(([, to]) => dirname(to)));
  for (const part of parts) assert(used.has(part), part);
});

/** Returns the imports of a folder that stay inside of it, as paths below it. */
function importsIn(folder: string): readonly (readonly [from: string, to: string])[] {
  return globSync(`${folder}/**/*.ts`)
    .filter((file) => !/(?:\.test|fixture)\.ts$/.test(file))
    .flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/ from "(\.[^"]+)"/g)].map(
        ([, path = ""]) => [relative(folder, file), relative(folder, join(dirname(file), path))] as const,
      ),
    )
    .filter(([, to]) => !to.startsWith(".."));
}
