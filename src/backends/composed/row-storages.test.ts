import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import type { Call } from "../../namespace/call/call.ts";
import type { RowStorage, StorageAccess } from "./row-storage.ts";
import { createRowStorages } from "./row-storages.ts";
import type { UpstreamVersions } from "./versions/upstream-versions.ts";

function world(versionsOf: Parameters<typeof createRowStorages>[2] = noVersions) {
  const opened: {
    readonly options: Readonly<Record<string, string>>;
    readonly renew: StorageAccess["renew"];
    isClosed: boolean;
  }[] = [];
  const storages = createRowStorages(
    async ({ options, renew }) => {
      const entry = { options, renew, isClosed: false };
      opened.push(entry);
      return {
        async close() {
          entry.isClosed = true;
        },
      } as unknown as RowStorage;
    },
    60_000,
    versionsOf,
  );
  return { opened, storages };
}

function noVersions(): never {
  throw new Error("the storage has the versions");
}

const expiring = (key: string, inMs: number) => ({
  aws_access_key_id: key,
  aws_secret_access_key: `${key}-secret`,
  expires_at_millis: String(Date.now() + inMs),
});

/** A table whose storage a caller wants. */
const WANTED = { root: "s3://lake", key: "t", options: {}, isOwn: false, caller: "one" };

describe("the open storages", () => {
  it("are the same for all callers with the same credentials", async () => {
    const { opened, storages } = world();
    const options = { aws_access_key_id: "a" };
    const one = await storages.acquire({ ...WANTED, options });
    const other = await storages.acquire({ ...WANTED, key: "u", options, caller: "other" });
    assert.equal(one.storage, other.storage);
    await storages.acquire({ ...WANTED, options: { aws_access_key_id: "b" } });
    await storages.acquire({ ...WANTED, root: "s3://lake2", options });
    assert.equal(opened.length, 3);
  });

  it("belong to one caller and one table whose versions the upstream commits, and requests are a running call's", async () => {
    const sources: string[] = [];
    const versionsOf = (id: readonly string[]) =>
      ({
        addSource({ requestId }: Call) {
          const source = `${requestId} of ${id.join()}`;
          sources.push(source);
          return () => void sources.splice(sources.indexOf(source), 1);
        },
      }) as UpstreamVersions;
    const { opened, storages } = world(versionsOf as never);
    const wanted = (table: string, caller: string) => ({
      ...{ ...WANTED, key: table, caller },
      managed: { id: [table], call: { requestId: caller } as Call },
    });
    const ada = await storages.acquire(wanted("t", "ada"));
    const again = await storages.acquire(wanted("t", "ada"));
    const bob = await storages.acquire(wanted("t", "bob"));
    await storages.acquire(wanted("u", "ada"));
    assert.equal(ada.storage, again.storage);
    assert.equal(opened.length, 3);
    const job = ada.share();
    for (const { release } of [ada, again, bob]) release();
    assert.deepEqual(sources, ["ada of u", "ada of t"]);
    job.release();
    assert.deepEqual(sources, ["ada of u"]);
    const passing = await storages.acquire({ ...wanted("v", "upkeep"), isPassing: true });
    passing.release();
    await expect.poll(() => opened.map(({ isClosed }) => isClosed)).toEqual([false, false, false, true]);
  });

  it("keep credentials that expire to their caller and their table", async () => {
    const { opened, storages } = world();
    const wanted = { ...WANTED, options: expiring("a", 3_600_000) };
    const first = await storages.acquire(wanted);
    const again = await storages.acquire({ ...wanted, options: expiring("b", 3_600_000) });
    assert.equal(first.storage, again.storage);
    await storages.acquire({ ...wanted, caller: "other" });
    await storages.acquire({ ...wanted, key: "u" });
    assert.equal(opened.length, 3);
  });

  it("of Google are opened with new credentials before the old ones expire, and closed when they are unused", async () => {
    const { opened, storages } = world();
    const wanted = { ...WANTED, root: "gs://lake", options: expiring("a", 40) };
    const first = await storages.acquire(wanted);
    await new Promise((resolve) => setTimeout(resolve, 35));
    const renewed = await storages.acquire({ ...wanted, options: expiring("b", 3_600_000) });
    assert.notEqual(first.storage, renewed.storage);
    assert.equal(opened[1]?.options["aws_access_key_id"], "b");
    assert.equal(opened[0]?.isClosed, false);
    first.release();
    await storages.close();
    assert.equal(opened[0]?.isClosed, true);
  });

  it("of S3 take new credentials while they are open", async () => {
    const { opened, storages } = world();
    const wanted = { ...WANTED, options: expiring("a", 40) };
    const first = await storages.acquire(wanted);
    await new Promise((resolve) => setTimeout(resolve, 35));
    const again = await storages.acquire({ ...wanted, options: expiring("b", 3_600_000) });
    assert.equal(first.storage, again.storage);
    assert.equal((await opened[0]?.renew?.())?.["aws_access_key_id"], "b");
  });

  it("are opened again for their caller after they may have refused credentials that expire", async () => {
    const { opened, storages } = world();
    const wanted = { ...WANTED, options: expiring("a", 3_600_000) };
    const first = await storages.acquire(wanted);
    first.release(true);
    const again = await storages.acquire({ ...wanted, options: expiring("b", 3_600_000) });
    assert.notEqual(first.storage, again.storage);
    assert.equal(opened[1]?.options["aws_access_key_id"], "b");
    const { release, storage } = await storages.acquire({ ...wanted, options: { aws_access_key_id: "c" } });
    release(true);
    assert.equal(
      (await storages.acquire({ ...wanted, options: { aws_access_key_id: "c" } })).storage,
      storage,
    );
  });

  it("are opened again after a failure", async () => {
    let tries = 0;
    const storages = createRowStorages(
      async () => {
        tries += 1;
        throw new Error("no such region");
      },
      60_000,
      noVersions,
    );
    await assert.rejects(storages.acquire(WANTED), /no such region/);
    await assert.rejects(storages.acquire(WANTED), /no such region/);
    assert.equal(tries, 2);
  });
});
