import assert from "node:assert/strict";
import { join } from "node:path";
import { test, vi } from "vitest";
import { silent, temporaryDirectory } from "../../../test/fixtures/dir/directory-backend.ts";
import { createDirectoryBackend } from "./index.ts";

test("a gateway does not start without a directory for temporary files", async (t) => {
  const root = await temporaryDirectory(t);
  const missing = join(root, "missing");
  vi.stubEnv("TMPDIR", missing);
  t.onTestFinished(() => void vi.unstubAllEnvs());
  await assert.rejects(createDirectoryBackend({ root, log: silent }), (error: Error) => {
    assert.equal(
      error.message,
      `the engine needs a directory for temporary files, and ${missing} cannot be written (ENOENT); TMPDIR names another one`,
    );
    return true;
  });
});
