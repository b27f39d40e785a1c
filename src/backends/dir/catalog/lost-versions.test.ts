import assert from "node:assert/strict";
import { access, cp, rename, rm } from "node:fs/promises";
import { test } from "vitest";
import { openBaseDirectory, table } from "../../../../test/fixtures/catalog/catalog.ts";
import { failsWith, silent } from "../../../../test/fixtures/dir/directory-backend.ts";
import { createCounter } from "../../../../test/support/shared-counter.ts";
import { createCatalog } from "./catalog.ts";

test("a worker that has read nothing refuses a catalog that has lost what another worker has committed", async (t) => {
  const { location, manifestTable } = await openBaseDirectory(t);
  const newestSeen = createCounter();
  const openWorker = () => createCatalog(manifestTable(), silent, { maintenance: false, newestSeen });
  const [first, second] = [openWorker(), openWorker()];
  assert.equal((await second.read()).size, 0);
  await first.mutate((draft) => draft.put(table("t")));
  await rename(location, `${location}-away`);
  for (const worker of [second, first, openWorker()]) {
    await assert.rejects(worker.read(), failsWith("ServiceUnavailable"));
    await assert.rejects(
      worker.mutate((draft) => draft.put(table("u"))),
      failsWith("ServiceUnavailable"),
    );
  }
  await assert.rejects(access(location), "nobody starts another catalog");
  await rename(`${location}-away`, location);
  for (const worker of [first, second, openWorker()])
    assert.notEqual((await worker.read()).get("t"), undefined);
});

test("a worker refuses an older catalog than another worker has read", async (t) => {
  const { location, manifestTable, open } = await openBaseDirectory(t);
  const newestSeen = createCounter();
  const openWorker = () => createCatalog(manifestTable(), silent, { maintenance: false, newestSeen });
  const [reader, other, foreign] = [openWorker(), openWorker(), open()];
  await foreign.mutate((draft) => draft.put(table("t")));
  await other.read();
  await cp(location, `${location}-backup`, { recursive: true });
  await foreign.mutate((draft) => draft.put(table("u")));
  assert.equal((await reader.read()).size, 2);
  await rm(location, { recursive: true });
  await rename(`${location}-backup`, location);
  await assert.rejects(other.read(), failsWith("ServiceUnavailable"));
});
