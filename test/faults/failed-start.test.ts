import assert from "node:assert/strict";
import { test, vi } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { silent, temporaryDirectory } from "../fixtures/dir/directory-backend.ts";

const closed = vi.hoisted(() => ({ count: 0 }));

vi.mock("../../src/backends/dir/open-directory.ts", async (original) => {
  const { openDirectory } = await original<typeof import("../../src/backends/dir/open-directory.ts")>();
  return {
    async openDirectory(...options: Parameters<typeof openDirectory>) {
      const directory = await openDirectory(...options);
      const close = () => {
        closed.count++;
        return directory.close();
      };
      return { ...directory, close };
    },
  };
});

vi.mock("../../src/backends/dir/operations/rows/staging-sweep.ts", () => ({
  startStagingSweep: () => Promise.reject(new Error("the sweep fails")),
}));

test("closes what a backend has opened when its start fails", async (t) => {
  const root = await temporaryDirectory(t);
  await assert.rejects(createDirectoryBackend({ root, log: silent }), /the sweep fails/);
  assert.equal(closed.count, 1);
});
