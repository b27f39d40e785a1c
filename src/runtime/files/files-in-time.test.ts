import assert from "node:assert/strict";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { inFastTime } from "../../../test/support/fast-time.ts";
import { makeSilentFile } from "../../../test/support/silent-file.ts";
import { readText } from "./files-in-time.ts";

test("a file that does not answer fails in time, is not asked again, and is read when another takes its place", async () => {
  const { path: folder, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const [path, other] = [join(folder, "file"), join(folder, "other")];
  await makeSilentFile(path);
  await inFastTime(() => assert.rejects(readText(path), { code: "ETIMEDOUT" }));
  await assert.rejects(readText(path), { code: "ETIMEDOUT" });
  await writeFile(other, "text");
  await rename(other, path);
  assert.equal(await readText(path), "text");
});
