import assert from "node:assert/strict";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { watchFiles } from "./watch-files.ts";

it("calls back for every file that is written or replaced, once at a time, until it ends", async () => {
  const { path: folder, remove } = await temporaryDirectory();
  const [one, other] = [join(folder, "one"), join(folder, "other")];
  await Promise.all([writeFile(one, "1"), writeFile(other, "1")]);
  let [calls, running] = [0, 0];
  const release = Promise.withResolvers<void>();
  const end = watchFiles(
    [one, other],
    async () => {
      calls += 1;
      running += 1;
      assert.equal(running, 1);
      await release.promise;
      running -= 1;
    },
    10,
  );
  let version = 1;
  /** Replaces a file, as editors do, and counts the calls. */
  const replace = async (path: string) => {
    version += 1;
    await writeFile(`${path}.new`, String(version));
    await rename(`${path}.new`, path);
    return calls;
  };
  await expect.poll(() => replace(one)).toBe(1);
  release.resolve();
  await expect.poll(() => replace(other)).toBeGreaterThan(1);
  end();
  await remove();
});
