import assert from "node:assert/strict";
import { type TestContext, test, vi } from "vitest";
import { stageNext } from "../../../../../test/fixtures/dir/batch.ts";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { people, personStream } from "../../../../../test/support/arrow.ts";
import { createLocalStore } from "../local/local-store.ts";
import { keyIn, type ObjectStore } from "../storage.ts";
import { pruneVersions } from "../versions/prune.ts";
import { latestVersion, readVersion } from "../versions/version-files.ts";
import { commitMetadata } from "./commit.ts";
import { createVersion } from "./staged-version.ts";

/** A table, and a process that syncs the files of the newest version while others make the next ones and prune. */
async function createWorld(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, personStream(people(2)));
  await client.close();
  const disk = createLocalStore();
  const table = { store: disk, root: keyIn(disk.keyOf(`${root}/data`), "t.lance") };
  t.onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["Date"] });
  let isDone = false;
  async function othersGoOn() {
    if (isDone) return;
    isDone = true;
    for (let i = 0; i < 4; i++)
      await commitMetadata(table, { config: { entries: { [`other${i}`]: "yes" } } });
    const clock = { now: async () => Date.now() + 60_000 };
    await pruneVersions(table, { keep: 2, minAgeMs: 0, clock, signal: new AbortController().signal });
    vi.setSystemTime(Date.now() + 60_000);
  }
  const files = disk.files as NonNullable<ObjectStore["files"]>;
  const store: ObjectStore = {
    ...disk,
    files: {
      ...files,
      async syncObjects(...args) {
        await othersGoOn();
        await files.syncObjects(...args);
      },
    },
  };
  return { table, slow: { ...table, store } };
}

test("a change of metadata follows the versions that others have made and pruned during a long sync", async (t) => {
  const { table, slow } = await createWorld(t);
  const { version } = await commitMetadata(slow, { config: { entries: { ours: "yes" } } });
  const { manifest } = await readVersion(table);
  assert.equal(manifest.config["ours"], "yes");
  assert.equal(manifest.version, version);
});

test("refuses a staged version whose number others have used and pruned during a long sync", async (t) => {
  const { table, slow } = await createWorld(t);
  const staged = await stageNext(table, "ours");
  const stagedVersion = { version: staged.version, stagedKey: staged.manifestPath };
  await assert.rejects(createVersion(slow, stagedVersion), failsWith("ConcurrentModification"));
  assert.equal((await latestVersion(table))?.version, staged.version + 3n);
});
