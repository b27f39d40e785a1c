import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { chmod, open, readdir, readFile, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test, vi } from "vitest";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { createRandom, type Random } from "../../../../test/support/random.ts";
import { seedOf } from "../../../../test/support/seed.ts";
import { type BlockCache, createBlockCache } from "./block-cache.ts";
import { openCounters } from "./counters.ts";
import { type DiskSlots, openDiskSlots } from "./disk-slots.ts";
import { createChecksums, createEncryption, type ObjectFacts, type Seal } from "./record.ts";

const BLOCK = 64;
const MAX_BYTES = 4_096 + 12 * (BLOCK + 256) + 100;

interface Opened {
  readonly cache: BlockCache;
  readonly disk: DiskSlots;
  readonly counters: ReturnType<typeof openCounters>;
  readonly failures: Error[];
}

async function openCache(directory: string, seal: Seal, wrap = (disk: DiskSlots) => disk): Promise<Opened> {
  const counters = openCounters();
  const failures: Error[] = [];
  let at = 0;
  const cache = createBlockCache({
    ...{ blockBytes: BLOCK, memoryBytes: 3 * BLOCK, counters },
    // A full disk is tried again after some steps.
    now: () => (at += 3_000),
    onDiskError: (error) => failures.push(error),
  });
  const disk = await openDiskSlots({ directory, maxBytes: MAX_BYTES, blockBytes: BLOCK, seal });
  await cache.attach(wrap(disk));
  return { cache, disk, counters, failures };
}

async function closeCache({ cache, disk }: Opened): Promise<void> {
  await cache.settled();
  await disk.close();
}

function factsOf(seal: Seal, object: number, tag: number): ObjectFacts {
  const size = 3 * BLOCK + 17 + object;
  const name = seal.nameOf(`object ${object}`).toString("hex");
  return { name, kind: object % 3 === 0 ? "index" : "data", tag: `"${tag}"`, size, modified: 1_000 };
}

/** Returns what a block must have: it differs for each object, tag and position. */
function contentOf({ name, tag, size }: ObjectFacts, index: number): Buffer {
  const length = Math.min(BLOCK, size - index * BLOCK);
  const digest = createHash("sha512").update(`${name} ${tag} ${index}`).digest();
  return Buffer.from(digest.subarray(0, length));
}

async function sizeOf(directory: string): Promise<number> {
  const names = await readdir(directory);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

const SEALS = { checksums: createChecksums(), encryption: createEncryption(randomBytes(32)) };

describe.each(Object.entries(SEALS))("with %s", (_, seal) => {
  test("blocks survive a restart, and the files keep to their bound", async (t) => {
    const directory = await temporaryDirectory(t);
    const first = await openCache(directory, seal);
    for (let object = 0; object < 20; object += 1) {
      const facts = factsOf(seal, object, 1);
      const opened = first.cache.open(facts);
      for (let index = 0; index < 4; index += 1) first.cache.put(opened, index, contentOf(facts, index));
      await first.cache.settled();
    }
    await closeCache(first);
    assert.ok((await sizeOf(directory)) <= MAX_BYTES);
    const again = await openCache(directory, seal);
    let found = 0;
    for (let object = 0; object < 20; object += 1) {
      const known = again.cache.find(factsOf(seal, object, 1).name);
      for (let index = 0; known !== undefined && index < 4; index += 1) {
        const bytes = await again.cache.read(known, index);
        if (bytes === undefined) continue;
        assert.deepEqual(bytes, contentOf(known, index));
        found += 1;
      }
    }
    // A slot that is written while its block leaves stays empty.
    assert.ok(found >= again.disk.count - 4 && found <= again.disk.count, `${found} of ${again.disk.count}`);
    await closeCache(again);
  });

  test("no schedule of crashes, damage, full disks and other writers makes it answer a wrong byte", async (t) => {
    const directory = await temporaryDirectory(t);
    const random = createRandom(seedOf("CACHE_SEED"));
    const schedules = Number(process.env["CACHE_SCHEDULES"] ?? 300);
    const tally = { read: 0, missed: 0 };
    for (let schedule = 0; schedule < schedules; schedule += 1) {
      await runSchedule(directory, seal, random, tally);
      assert.ok((await sizeOf(directory)) <= MAX_BYTES, `schedule ${schedule}`);
    }
    assert.ok(tally.read > schedules && tally.missed > 0, JSON.stringify(tally));
  });
});

/** Wraps a disk so that some writes are lost, refused, or stop half-way. */
function faulty(disk: DiskSlots, directory: string, random: Random): DiskSlots {
  return {
    ...disk,
    async write(slot, block, bytes) {
      const fate = random.below(10);
      if (fate === 0) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
      const own = await disk.write(slot, block, bytes);
      if (fate === 1) await damage(join(directory, "lance-gateway.blocks"), random, slot * BLOCK, BLOCK);
      if (fate === 2) await damage(join(directory, "lance-gateway.records"), random, 4_096 + slot * 256, 256);
      return own;
    },
    async read(...place) {
      if (random.below(50) === 0) throw Object.assign(new Error("bad sector"), { code: "EIO" });
      return disk.read(...place);
    },
  };
}

/** Changes a byte of a file. */
async function damage(path: string, random: Random, from: number, length: number): Promise<void> {
  const file = await open(path, "r+");
  const byte = Buffer.alloc(1);
  const at = from + random.below(Math.max(1, length));
  await file.read(byte, 0, 1, at);
  await file.write(Buffer.from([(byte[0] as number) ^ (1 << random.below(8))]), 0, 1, at);
  await file.close();
}

async function runSchedule(
  directory: string,
  seal: Seal,
  random: Random,
  tally: { read: number; missed: number },
): Promise<void> {
  const start = () => openCache(directory, seal, (disk) => faulty(disk, directory, random));
  const processes = [await start()];
  /** Processes that were killed, whose last writes may still happen. */
  const killed: Opened[] = [];
  for (let step = 0; step < 24; step += 1) {
    const current = random.pick(processes);
    const { cache } = current;
    const facts = factsOf(seal, random.below(4), random.below(5) === 0 ? 2 : 1);
    const index = random.below(4);
    switch (random.below(16) >>> 1 || random.below(8)) {
      case 0:
      case 1:
      case 2:
        cache.put(cache.open(facts), index, contentOf(facts, index));
        break;
      case 3:
      case 4:
      case 5: {
        const object = cache.find(facts.name);
        const bytes = object && (await cache.read(object, index));
        if (object === undefined || bytes === undefined) tally.missed += 1;
        else {
          assert.deepEqual(bytes, contentOf(object, index));
          tally.read += 1;
        }
        break;
      }
      case 6:
        await damageSomething(directory, random);
        break;
      case 7:
        killed.push(current);
        processes.splice(processes.indexOf(current), 1);
        processes.push(await start());
        if (processes.length === 1 && random.below(4) === 0) processes.push(await start());
        break;
    }
  }
  for (const each of [...processes, ...killed]) await closeCache(each);
}

async function damageSomething(directory: string, random: Random): Promise<void> {
  const path = join(directory, random.pick(["lance-gateway.blocks", "lance-gateway.records"]));
  const { size } = await stat(path);
  if (random.below(6) === 0) await truncate(path, random.below(size + 1));
  else await damage(path, random, 0, size);
}

test("every single changed bit of a block or a record is a miss", async (t) => {
  const directory = await temporaryDirectory(t);
  const seal = SEALS.checksums;
  const facts = factsOf(seal, 1, 1);
  for (const name of ["lance-gateway.blocks", "lance-gateway.records"]) {
    const path = join(directory, name);
    const [from, length] = name.endsWith("blocks") ? [0, BLOCK] : [4_096, 256];
    for (let bit = 0; bit < length * 8; bit += 13) {
      const first = await openCache(directory, seal);
      first.cache.forget(facts.name);
      first.cache.put(first.cache.open(facts), 0, contentOf(facts, 0));
      await closeCache(first);
      const file = await open(path, "r+");
      const byte = Buffer.alloc(1);
      await file.read(byte, 0, 1, from + (bit >>> 3));
      await file.write(Buffer.from([(byte[0] as number) ^ (1 << (bit & 7))]), 0, 1, from + (bit >>> 3));
      await file.close();
      const again = await openCache(directory, seal);
      const object = again.cache.find(facts.name);
      assert.equal(object && (await again.cache.read(object, 0)), undefined, `${name} ${bit}`);
      await closeCache(again);
    }
  }
});

test("a block that was written with another key is not read, and nothing is readable without it", async (t) => {
  const directory = await temporaryDirectory(t);
  const facts = factsOf(SEALS.encryption, 1, 1);
  const first = await openCache(directory, SEALS.encryption);
  first.cache.put(first.cache.open(facts), 0, contentOf(facts, 0));
  await closeCache(first);
  const stored = await readFile(join(directory, "lance-gateway.blocks"));
  assert.ok(!stored.includes(contentOf(facts, 0).subarray(0, 16)));
  const other = await openCache(directory, createEncryption(randomBytes(32)));
  assert.equal(other.cache.find(facts.name), undefined);
  await closeCache(other);
});

test("a link in the place of a file is not followed", async (t) => {
  for (const name of ["lance-gateway.blocks", "lance-gateway.records"]) {
    const [directory, elsewhere] = [await temporaryDirectory(t), await temporaryDirectory(t)];
    const file = join(elsewhere, "file of the user");
    await writeFile(file, "not of the cache", { mode: 0o644 });
    await symlink(file, join(directory, name));
    await assert.rejects(openCache(directory, createChecksums()), new RegExp(`${name} is a link$`));
    assert.equal(await readFile(file, "utf8"), "not of the cache");
    assert.equal((await stat(file)).mode & 0o777, 0o644);
  }
});

test("a directory that others may change is refused", async (t) => {
  const directory = await temporaryDirectory(t);
  for (const mode of [0o777, 0o1777, 0o770, 0o702]) {
    await chmod(directory, mode);
    await assert.rejects(openCache(directory, createChecksums()), /is writable for others than its owner/);
  }
  assert.deepEqual(await readdir(directory), []);
  await chmod(directory, 0o755);
  await closeCache(await openCache(directory, createChecksums()));
});

test("a directory of another user is refused", async (t) => {
  const directory = await temporaryDirectory(t);
  const { uid } = await stat(directory);
  const getuid = vi.spyOn(process, "getuid").mockReturnValue(uid + 1);
  t.onTestFinished(() => getuid.mockRestore());
  await assert.rejects(openCache(directory, createChecksums()), /belongs to another user/);
  assert.deepEqual(await readdir(directory), []);
});
