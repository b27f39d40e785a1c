import type { CacheCounters } from "./counters.ts";
import type { DiskSlots } from "./disk-slots.ts";
import { createEviction } from "./eviction.ts";
import type { ObjectFacts, SlotRecord } from "./record.ts";

/** An object of which the cache has blocks, or reads some. */
export interface CachedObject extends ObjectFacts {
  /** Blocks that are being read from the bucket, by their positions; later readers wait for the same bytes. */
  readonly loading: Map<number, Promise<Buffer>>;
  /** Whether the object in the bucket may be another one by now, so that nothing of this one is kept. */
  readonly isForgotten: boolean;
}

/** Blocks of immutable objects, in memory and on a disk. */
export interface BlockCache {
  /** Size of all blocks but the last one of an object, in bytes. */
  readonly blockBytes: number;
  find(name: string): CachedObject | undefined;
  /** Returns the object with these facts. An object of this name with another tag is forgotten. */
  open(facts: ObjectFacts): CachedObject;
  /** Whether a block is here. */
  has(object: CachedObject, index: number): boolean;
  /** Reads a block; undefined if it is not here, or damaged. */
  read(object: CachedObject, index: number): Promise<Buffer | undefined>;
  /** Returns neighbouring blocks, from the first to the last position, that are all in memory; undefined if one is not. */
  readMemory(object: CachedObject, first: number, last: number): readonly Buffer[] | undefined;
  /** Keeps a block. */
  put(object: CachedObject, index: number, bytes: Buffer): void;
  /** Has all blocks of an object stay as long as blocks that are read often. */
  prefer(object: CachedObject): void;
  /** Size of the blocks of an object that are here, in bytes. */
  bytesOf(name: string): number;
  /** Room for blocks on the disk and in memory, in bytes. */
  readonly roomBytes: number;
  /** Drops an object that may have changed in the bucket. */
  forget(name: string): void;
  /** Returns a number that changes whenever an object of this name is dropped. */
  dropsOf(name: string): number;
  /** Drops an object that nobody reads and of which no block is here. */
  release(object: CachedObject): void;
  /** Begins to use a disk, and finds what it has. */
  attach(disk: DiskSlots): Promise<void>;
  /** Resolves when all blocks are written. */
  settled(): Promise<void>;
}

/** Options of {@link createBlockCache}. */
export interface BlockCacheOptions {
  readonly blockBytes: number;
  /** Memory for blocks, in bytes. */
  readonly memoryBytes: number;
  readonly counters: CacheCounters;
  /** Reports a failure of the disk, which is a miss for everybody else. */
  readonly onDiskError: (error: Error) => void;
  /** Milliseconds, for tests. Default: a monotonic clock. */
  readonly now?: () => number;
}

interface Kept extends CachedObject {
  isForgotten: boolean;
  isPreferred: boolean;
  readonly blocks: Map<number, Block>;
}

interface Block {
  readonly object: Kept;
  readonly index: number;
  /** In the room of the memory. */
  bytes: Buffer | undefined;
  /** On its way to the disk. */
  writing: Buffer | undefined;
  slot: { readonly number: number; readonly record: SlotRecord } | undefined;
}

/** Bytes that wait to be written; beyond them, blocks stay in memory alone. */
const MAX_WAITING_BYTES = 64 * 2 ** 20;

/** Number of blocks that are written at a time. */
const WRITERS = 4;

/** Number of dropped names that are remembered. */
const MAX_DROPS = 10_000;

/** Pause after a disk refused to be written, in milliseconds. */
const PAUSE_MS = 10_000;

/** Creates a cache without a disk; see {@link BlockCache.attach}. */
export function createBlockCache(options: BlockCacheOptions): BlockCache {
  const { blockBytes, memoryBytes, counters, onDiskError, now = () => performance.now() } = options;
  const objects = new Map<string, Kept>();
  /** Names by when they were last dropped, the oldest first. */
  const drops = new Map<string, number>();
  let dropCount = 0;
  const keyOf = ({ object, index }: Block) => `${object.name}${index}`;
  const memory = createEviction<Block>({
    ...{ capacity: memoryBytes, keyOf, now },
    onEvict(block) {
      counters.add("evictedMemory", 1);
      block.bytes = undefined;
      dropIfEmpty(block);
    },
  });
  let disk: DiskSlots | undefined;
  let slots: ReturnType<typeof createEviction<Block>> | undefined;
  const free: number[] = [];
  let unused = 0;
  const waiting: { readonly block: Block; readonly bytes: Buffer; readonly number: number }[] = [];
  let waitingBytes = 0;
  let writers = 0;
  let pausedUntil = 0;
  const whenSettled: (() => void)[] = [];

  function dropIfEmpty(block: Block): void {
    const { object, index, bytes, writing, slot } = block;
    if (bytes !== undefined || writing !== undefined || slot !== undefined) return;
    if (object.blocks.get(index) === block) object.blocks.delete(index);
    release(object);
  }
  function release(object: CachedObject): void {
    const kept = object as Kept;
    if (kept.blocks.size > 0 || kept.loading.size > 0 || objects.get(kept.name) !== kept) return;
    objects.delete(kept.name);
  }
  function touch(block: Block): void {
    memory.touch(block);
    slots?.touch(block);
  }
  function keepInMemory(block: Block, bytes: Buffer): void {
    block.bytes = bytes;
    memory.add(block, bytes.length, block.object.kind === "index");
    if (memoryBytes < bytes.length) block.bytes = undefined;
    counters.set("memoryBytes", memory.weight);
  }
  function freeSlot(number: number): void {
    free.push(number);
    counters.set("diskBytes", (slots?.weight ?? 0) * blockBytes);
  }
  function failed(error: unknown): void {
    counters.add("diskErrors", 1);
    onDiskError(error as Error);
  }
  function leaveSlot(block: Block): void {
    const { slot } = block;
    if (slot === undefined) return;
    block.slot = undefined;
    freeSlot(slot.number);
  }

  /** Takes a slot for a block, from another one if all are in use. */
  function takeSlot(block: Block): number | undefined {
    if (disk === undefined || slots === undefined) return undefined;
    slots.add(block, 1, block.object.kind !== "data" || block.object.isPreferred);
    const number = free.pop() ?? (unused < disk.count ? unused++ : undefined);
    // The slot that has become free is still being written.
    if (number === undefined) slots.remove(block);
    return number;
  }
  function writeSoon(block: Block, bytes: Buffer): void {
    if (disk === undefined || now() < pausedUntil) return;
    const number = waitingBytes + bytes.length > MAX_WAITING_BYTES ? undefined : takeSlot(block);
    if (number === undefined) {
      counters.add("skippedWrites", 1);
      return;
    }
    block.writing = bytes;
    waiting.push({ block, bytes, number });
    waitingBytes += bytes.length;
    if (writers < WRITERS) void writeWaiting();
  }
  async function writeWaiting(): Promise<void> {
    writers += 1;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { block, bytes, number } = next;
      await writeBlock(block, bytes, number).catch((error: unknown) => {
        slots?.remove(block);
        freeSlot(number);
        pausedUntil = now() + PAUSE_MS;
        failed(error);
      });
      waitingBytes -= bytes.length;
      block.writing = undefined;
      dropIfEmpty(block);
    }
    writers -= 1;
    if (writers > 0) return;
    for (const settle of whenSettled.splice(0)) settle();
  }
  async function writeBlock(block: Block, bytes: Buffer, number: number): Promise<void> {
    const { object, index } = block;
    // It may have to leave, or be forgotten, while it is written.
    const isHere = () => !object.isForgotten && slots?.has(block) === true;
    const seal = isHere() ? await (disk as DiskSlots).write(number, block, bytes) : undefined;
    if (seal === undefined || !isHere()) {
      slots?.remove(block);
      if (seal !== undefined) await (disk as DiskSlots).erase(number);
      freeSlot(number);
      return;
    }
    block.slot = { number, record: { object, index, seal } };
    counters.add("writtenBytes", bytes.length);
    counters.set("diskBytes", (slots?.weight ?? 0) * blockBytes);
  }

  function forget(name: string): void {
    drops.delete(name);
    drops.set(name, ++dropCount);
    for (const oldest of drops.keys()) {
      if (drops.size <= MAX_DROPS) break;
      drops.delete(oldest);
    }
    const object = objects.get(name);
    if (object === undefined) return;
    object.isForgotten = true;
    objects.delete(name);
    for (const block of object.blocks.values()) {
      memory.remove(block);
      slots?.remove(block);
      block.bytes = undefined;
      const number = block.slot?.number;
      if (number !== undefined) disk?.erase(number).catch(failed);
      leaveSlot(block);
    }
    object.blocks.clear();
    counters.set("memoryBytes", memory.weight);
  }
  function open(facts: ObjectFacts): Kept {
    const known = objects.get(facts.name);
    if (known !== undefined && known.tag === facts.tag && known.size === facts.size) return known;
    if (known !== undefined) forget(facts.name);
    const object: Kept = {
      ...facts,
      blocks: new Map(),
      loading: new Map(),
      isForgotten: false,
      isPreferred: false,
    };
    objects.set(facts.name, object);
    return object;
  }
  return {
    blockBytes,
    find: (name) => objects.get(name),
    open,
    has: (object, index) => (object as Kept).blocks.has(index),
    readMemory(object, first, last) {
      const found: Buffer[] = [];
      for (let index = first; index <= last; index += 1) {
        const block = (object as Kept).blocks.get(index);
        const bytes = block?.bytes ?? block?.writing;
        if (bytes === undefined) return undefined;
        found.push(bytes);
      }
      for (let index = first; index <= last; index += 1) touch((object as Kept).blocks.get(index) as Block);
      counters.add("hitsMemory", found.length);
      return found;
    },
    async read(object, index) {
      const block = (object as Kept).blocks.get(index);
      if (block === undefined) return undefined;
      touch(block);
      const inMemory = block.bytes ?? block.writing;
      if (inMemory !== undefined) {
        counters.add("hitsMemory", 1);
        return inMemory;
      }
      const { slot } = block;
      if (slot === undefined || disk === undefined) return undefined;
      const length = Math.min(blockBytes, object.size - index * blockBytes);
      const bytes = await disk.read(slot.number, slot.record, length).catch((error: unknown) => {
        failed(error);
        return undefined;
      });
      if (bytes !== undefined) {
        counters.add("hitsDisk", 1);
        if (block.bytes === undefined && block.slot === slot) keepInMemory(block, bytes);
        return bytes;
      }
      // Another process, a crash or the disk has changed the slot; or it has another block by now.
      if (block.slot === slot) {
        counters.add("damagedBlocks", 1);
        slots?.remove(block);
        leaveSlot(block);
        dropIfEmpty(block);
      }
      return undefined;
    },
    put(object, index, bytes) {
      const kept = object as Kept;
      if (kept.isForgotten || kept.blocks.has(index)) return;
      const known = objects.get(kept.name);
      if (known !== undefined && known !== kept) return;
      // Its last block may have left while this one was read.
      objects.set(kept.name, kept);
      const block: Block = { object: kept, index, bytes: undefined, writing: undefined, slot: undefined };
      kept.blocks.set(index, block);
      keepInMemory(block, bytes);
      writeSoon(block, bytes);
      dropIfEmpty(block);
    },
    prefer(object) {
      (object as Kept).isPreferred = true;
    },
    bytesOf(name) {
      const object = objects.get(name);
      let bytes = 0;
      for (const index of object?.blocks.keys() ?? [])
        bytes += Math.min(blockBytes, (object as Kept).size - index * blockBytes);
      return bytes;
    },
    get roomBytes() {
      return memoryBytes + (disk?.count ?? 0) * blockBytes;
    },
    forget,
    dropsOf: (name) => drops.get(name) ?? 0,
    release,
    async attach(opened) {
      const evictions = createEviction<Block>({
        ...{ capacity: opened.count, keyOf, now },
        onEvict(block) {
          counters.add("evictedDisk", 1);
          leaveSlot(block);
          dropIfEmpty(block);
        },
      });
      await opened.load((number, record) => {
        while (unused < number) free.push(unused++);
        unused = number + 1;
        const object = admit(record.object);
        const known = object?.blocks.get(record.index);
        if (object === undefined || known?.slot !== undefined) return void free.push(number);
        // It may be in memory alone, if another process had the disk until now.
        const block = known ?? {
          object,
          index: record.index,
          bytes: undefined,
          writing: undefined,
          slot: undefined,
        };
        block.slot = { number, record };
        object.blocks.set(record.index, block);
        evictions.add(block, 1, true);
      });
      [disk, slots] = [opened, evictions];
      counters.set("diskBytes", slots.weight * blockBytes);
    },
    settled() {
      if (writers === 0) return Promise.resolve();
      return new Promise((resolve) => whenSettled.push(resolve));
    },
  };

  /** Returns the object of a record; undefined if it is known with another tag. */
  function admit(facts: ObjectFacts): Kept | undefined {
    const known = objects.get(facts.name);
    return known === undefined || (known.tag === facts.tag && known.size === facts.size)
      ? open(facts)
      : undefined;
  }
}
