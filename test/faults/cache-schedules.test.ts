import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "vitest";
import { UncacheableError } from "../../src/backends/dir/cache/read-through.ts";
import {
  createChecksums,
  createEncryption,
  RECORD_BYTES,
  type Seal,
} from "../../src/backends/dir/cache/record.ts";
import { createRandom, type Random } from "../support/random.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { seedOf } from "../support/seed.ts";
import { type CachedGateway, MEMORY_BYTES, openCachedGateway } from "./cache/cached-gateway.ts";
import { BLOCK_BYTES, DAMAGES, damageFiles } from "./cache/damage-files.ts";
import { bytesOf, createFakeBucket, type FakeBucket } from "./cache/fake-bucket.ts";

// CACHE_SCHEDULES=10000 is the number of the promise in docs/cache.md; CACHE_SEED draws others.
const SCHEDULES = Number(process.env["CACHE_SCHEDULES"] ?? 60);
const SEED = seedOf("CACHE_SEED");

const SCRATCH = scratchDirectory();
const STEPS = 30;
const SLOTS = 10;
const MAX_BYTES = 4_096 + SLOTS * (BLOCK_BYTES + RECORD_BYTES) + 100;
const FAR = "root/t.lance";

/** Counts of the events of schedules, none of which may be missing unnoticed. */
interface Tally {
  reads: number;
  failed: number;
  fromCacheAlone: number;
  damages: number;
}

const drawName = (random: Random) => Array.from({ length: 32 }, () => random.below(16).toString(16)).join("");

/** Returns a new key, as a writer of the format draws it. */
function drawKey(random: Random): string {
  const hex = drawName(random);
  const uuid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  const names = [
    `data/${hex}.lance`,
    `_indices/${uuid}/index.idx`,
    `_transactions/3-${uuid}.txn`,
    `_deletions/1-2-${1 + random.below(2 ** 30)}${random.below(2 ** 30)}.arrow`,
  ];
  return `${FAR}/${random.pick(names)}`;
}

function drawRange(random: Random, size: number): string | undefined {
  const [start, length] = [random.below(size), 1 + random.below(size)];
  return random.pick([
    undefined,
    `bytes=${start}-${start + length - 1}`,
    `bytes=${start}-${start + length - 1}`,
    `bytes=${start}-`,
    `bytes=-${length}`,
  ]);
}

/** Returns the bytes that a direct read of the bucket would return. */
function direct(bytes: Buffer, range: string | undefined): Buffer {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  if (range === undefined) return bytes;
  if (first === "") return bytes.subarray(Math.max(0, bytes.length - Number(last)));
  return bytes.subarray(Number(first), last === "" ? undefined : Number(last) + 1);
}

/** Runs a schedule of reads, writes and faults. */
async function runSchedule(directory: string, seal: Seal, random: Random, tally: Tally): Promise<void> {
  const bucket: FakeBucket = createFakeBucket(random);
  let isFull = false;
  const open = () =>
    openCachedGateway({ directory, bucket, seal, maxBytes: MAX_BYTES, random, isFull: () => isFull });
  // Two gateways on one directory, which a lock prevents: their blocks overwrite each other's.
  const gateways = [await open(), await open()];
  const keys: string[] = [];
  const drawObject = (key: string, version: number) => ({
    bytes: bytesOf(`${key} ${version}`, 1 + random.below(8 * BLOCK_BYTES)),
    tag: `"${drawName(random).slice(0, 4 + random.below(20))}"`,
  });

  async function add(): Promise<void> {
    const key = drawKey(random);
    keys.push(key);
    // Another program writes beside the cache.
    if (random.below(2) === 0) bucket.objects.set(key, drawObject(key, 0));
    else await random.pick(gateways).write(key, drawObject(key, 0));
  }
  async function read(gateway: CachedGateway): Promise<void> {
    const key = random.pick(keys);
    const stored = bucket.objects.get(key);
    const range = drawRange(random, stored?.bytes.length ?? 100);
    tally.reads += 1;
    try {
      const found = await gateway.read(key, range);
      if (found !== undefined && stored !== undefined) assert.deepEqual(found, direct(stored.bytes, range));
      else if (found !== undefined) tally.fromCacheAlone += 1;
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      assert.ok(
        bucket.faults > 0 || stored === undefined || error instanceof UncacheableError,
        String(error),
      );
      tally.failed += 1;
    }
  }
  async function restart(end: (gateway: CachedGateway) => Promise<void>): Promise<void> {
    const at = random.below(gateways.length);
    await end(gateways[at] as CachedGateway);
    gateways[at] = await open();
  }
  await add();
  for (let step = 0; step < STEPS; step += 1) {
    switch (random.below(12)) {
      case 0:
      case 1:
        await add();
        break;
      case 2: {
        // In turn, since a draw may leave one out of a whole run.
        const kind = DAMAGES[tally.damages % DAMAGES.length] as string;
        await damageFiles(directory, kind, random);
        tally.damages += 1;
        break;
      }
      case 3:
        await restart((gateway) => (random.below(2) === 0 ? gateway.kill() : gateway.stop()));
        break;
      case 4:
        isFull = !isFull;
        break;
      case 5:
        bucket.faults = random.pick([0, 0, 20, 60]);
        break;
      case 6:
        // The table was dropped; only a reader whose manifest names the file asks for it.
        bucket.objects.delete(random.pick(keys));
        break;
      default:
        await Promise.all(Array.from({ length: 1 + random.below(3) }, () => read(random.pick(gateways))));
    }
    for (const { memoryBytes } of gateways) assert.ok(memoryBytes <= MEMORY_BYTES, `memory: ${memoryBytes}`);
  }
  for (const gateway of gateways) await gateway.stop();
  // Garbage that something else has added is cut at the next start.
  await (await open()).stop();
  const names = await readdir(directory);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size));
  assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= MAX_BYTES, `bytes: ${sizes}`);
}

const SEALS = { checksums: createChecksums(), encryption: createEncryption(Buffer.alloc(32, 7)) };

describe.each(Object.entries(SEALS))("with %s", (_, seal) => {
  test("no schedule of kills, full disks, flipped bits, gateways and writers answers a wrong byte", async ({
    annotate,
  }) => {
    const tally: Tally = { reads: 0, failed: 0, fromCacheAlone: 0, damages: 0 };
    const count = Math.ceil(SCHEDULES / 2);
    for (let schedule = 0; schedule < count; schedule += 1) {
      const directory = await mkdtemp(join(SCRATCH, "cache-schedule-"));
      const seed = SEED * 1_000_000 + schedule;
      await runSchedule(directory, seal, createRandom(seed), tally).catch((error: unknown) => {
        throw new Error(`schedule ${schedule} of CACHE_SEED=${SEED}`, { cause: error });
      });
      await rm(directory, { recursive: true });
    }
    const { reads, failed, damages } = tally;
    await annotate(`${count} schedules, ${reads} reads, ${failed} failed, ${damages} damages`);
    assert.ok(reads > 10 * count && tally.fromCacheAlone > 0, JSON.stringify(tally));
    if (count >= 30) assert.ok(damages >= DAMAGES.length, JSON.stringify(tally));
  }, 3_600_000);
});
