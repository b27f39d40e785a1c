import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const top = join(import.meta.dirname, "../..");

test("only files with a process of their own replace modules", () => {
  // In a shared process a replacement has no effect on modules that an earlier file has imported.
  const config = readFileSync(join(top, "vitest.config.ts"), "utf8");
  const alone = /MOCKS = \[(.*?)\]/s.exec(config)?.[1] ?? "";
  const replacing = globSync("{src,test}/**/*.test.ts", { cwd: top })
    .filter((file) => /\bvi\.(?:mock|doMock)\(/.test(readFileSync(join(top, file), "utf8")))
    .filter((file) => !alone.includes(`"${file}"`));
  expect(replacing).toEqual([]);
});
