import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  listNames,
  listTree,
  type ObjectEntry,
  type ObjectStore,
} from "../../src/backends/dir/format/storage.ts";

/** A store under test, opened for {@link storeSuite}. */
export interface OpenStore {
  readonly store: ObjectStore;
  /** A second client of the same storage, as another process has one. */
  readonly other?: ObjectStore;
  /** Whether a deletion is refused that another write has overtaken. Default: true. */
  readonly comparesDeletions?: boolean;
  /** The key of a directory that is empty and that nobody else uses. */
  readonly directory: string;
  close?(): Promise<void>;
}

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text));
const textOf = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();

/** Tests the behaviour of a store that the catalog and the format rely on; every store's test is a call of this. */
export function storeSuite(name: string, open: () => Promise<OpenStore>): void {
  describe(`an object store: ${name}`, () => {
    let opened: OpenStore;
    let store: ObjectStore;
    let number = 0;
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
    });
    afterAll(() => opened?.close?.());
    const fresh = () => `${opened.directory}/d${++number}`;

    async function entries(directory: string): Promise<ObjectEntry[]> {
      const all: ObjectEntry[] = [];
      for await (const page of store.list(directory)) all.push(...page);
      return all.sort((a, b) => (a.name < b.name ? -1 : 1));
    }

    test("an object is written, replaced, read and deleted", async () => {
      const key = `${fresh()}/a b/c%20d+$é.bin`;
      assert.equal(await store.get(key), undefined);
      await store.put(key, bytesOf("one"));
      await store.put(key, bytesOf("two!"));
      assert.equal(textOf(await store.get(key)), "two!");
      const info = await store.head(key);
      assert.deepEqual([info?.key, info?.size], [key, 4]);
      assert.ok(Math.abs((info?.modifiedMillis ?? 0) - Date.now()) < 60_000);
      assert.equal(await store.delete(key), true);
      assert.equal(await store.get(key), undefined);
      assert.equal(await store.head(key), undefined);
      await store.delete(key);
    });

    test("many objects are deleted together, and those that do not exist are skipped", async () => {
      const directory = fresh();
      const keys = ["a", "b/c", "b/d"].map((key) => `${directory}/${key}`);
      for (const key of [...keys, `${directory}/b/stays`]) await store.put(key, bytesOf(key));
      await store.deleteAll([...keys, `${directory}/never`, `${directory}/no/directory`]);
      await store.deleteAll([]);
      assert.deepEqual(await listTree(store, directory), ["b/stays"]);
    });

    test("a key and its location belong together", () => {
      for (const key of ["a/b", "a/b c/50%/x?y#z", "ümlaut$1"])
        assert.equal(store.keyOf(store.uriOf(key)), key);
    });

    test("parts of an object are read, up to its end", async () => {
      const key = `${fresh()}/parts`;
      await store.put(key, bytesOf("0123456789"));
      const tail = await store.getTail(key, 3);
      assert.deepEqual([textOf(tail?.bytes), tail?.size], ["789", 10]);
      assert.equal(textOf((await store.getTail(key, 99))?.bytes), "0123456789");
      assert.equal(textOf(await store.getRange(key, 2, 4)), "23");
      assert.equal(textOf(await store.getRange(key, 8, 40)), "89");
      assert.equal(textOf(await store.getRange(key, 4, 4)), "");
      assert.equal(textOf(await store.getRange(key, 20, 30)), "");
      assert.equal(await store.getTail(`${key}-none`, 3), undefined);
      assert.equal(await store.getRange(`${key}-none`, 0, 3), undefined);
    });

    test("an empty object is one", async () => {
      const key = `${fresh()}/empty`;
      await store.put(key, new Uint8Array());
      assert.equal((await store.get(key))?.byteLength, 0);
      assert.equal((await store.getTail(key, 5))?.bytes.byteLength, 0);
      assert.equal((await store.head(key))?.size, 0);
    });

    test("long bytes go in and out as streams", async () => {
      const key = `${fresh()}/long`;
      const chunk = Buffer.alloc(1_000_000, 7);
      async function* source() {
        for (let i = 0; i < 36; i++) yield chunk;
      }
      await store.putStream(key, source());
      let size = 0;
      for await (const piece of (await store.getStream(key)) ?? []) size += piece.byteLength;
      assert.equal(size, 36_000_000);
      await store.putStream(`${key}-none`, (async function* (): AsyncIterable<Uint8Array> {})());
      assert.equal((await store.head(`${key}-none`))?.size, 0);
      assert.equal(await store.getStream(`${key}-missing`), undefined);
    });

    test("a stream that fails leaves nothing", async () => {
      const key = `${fresh()}/broken`;
      async function* source() {
        for (let i = 0; i < 20; i++) yield Buffer.alloc(1_000_000);
        throw new Error("cut off");
      }
      await assert.rejects(store.putStream(key, source()));
      assert.equal(await store.head(key), undefined);
    });

    test("of many who create an object, one does, and the object is its own", async () => {
      const directory = fresh();
      const stores = [store, opened.other ?? store];
      for (let round = 0; round < 5; round++) {
        const key = `${directory}/race-${round}`;
        const writers = Array.from({ length: 12 }, (_, i) => bytesOf(`writer ${i}`));
        const created = await Promise.all(
          writers.map((bytes, i) => (stores[i % 2] as ObjectStore).putIfAbsent(key, bytes)),
        );
        assert.equal(created.filter(Boolean).length, 1);
        assert.equal(textOf(await store.get(key)), `writer ${created.indexOf(true)}`);
      }
    });

    test("an object is replaced or deleted only as it was read", async () => {
      const key = `${fresh()}/tagged 1$.json`;
      assert.equal(await store.getTagged(key), undefined);
      await store.put(key, bytesOf("one"));
      const one = await store.getTagged(key);
      assert.equal(textOf(one?.bytes), "one");
      assert.equal(await store.replace(key, bytesOf("two"), one?.tag ?? ""), true);
      assert.equal(await store.replace(key, bytesOf("late"), one?.tag ?? ""), false);
      const two = await (opened.other ?? store).getTagged(key);
      assert.equal(textOf(two?.bytes), "two");
      if (opened.comparesDeletions !== false) {
        assert.equal(await store.deleteTagged(key, one?.tag ?? ""), false);
        assert.equal(textOf(await store.get(key)), "two");
      }
      assert.equal(await store.deleteTagged(key, two?.tag ?? ""), true);
      assert.equal(await store.get(key), undefined);
      assert.equal(await store.replace(key, bytesOf("three"), two?.tag ?? ""), false);
      assert.equal(await store.get(key), undefined);
    });

    test("a listing has objects and directories, and nothing of what is below or beside", async () => {
      const directory = fresh();
      const keys = ["a", "b/c", "b/d/e", ".hidden"].map((key) => `${directory}/${key}`);
      for (const key of [...keys, `${directory}x/y`]) await store.put(key, bytesOf(key));
      const found = await entries(directory);
      assert.deepEqual(
        found.map(({ name: own, isDirectory = false }) => [own, isDirectory]),
        [
          [".hidden", false],
          ["a", false],
          ["b", true],
        ],
      );
      const info = found[1]?.info;
      if (info !== undefined) assert.deepEqual(info, await store.head(keys[0] as string));
      assert.deepEqual(await entries(`${directory}/none`), []);
      assert.equal(await store.exists(directory), true);
      assert.equal(await store.exists(`${directory}/b`), true);
      assert.equal(await store.exists(`${directory}/none`), false);
      assert.equal(await store.exists(directory.slice(0, -1)), false);
    });

    test("a long listing comes whole, and in order where the store says so", async () => {
      const directory = fresh();
      const names = Array.from({ length: 1_100 }, (_, i) => String(i).padStart(5, "0"));
      const rest = names.values();
      const writer = async () => {
        for (const own of rest) await store.put(`${directory}/${own}`, bytesOf(own));
      };
      await Promise.all(Array.from({ length: 16 }, writer));
      const listed = await listNames(store, directory);
      assert.deepEqual(store.listsInOrder ? listed : listed.sort(), names);
      await store.deleteDirectory(directory, { last: "00500" });
      assert.deepEqual(await listNames(store, directory), []);
    });

    test("an object moves, in place of another", async () => {
      const directory = fresh();
      const [from, to] = [`${directory}/from 1$`, `${directory}/to/2`];
      await store.put(from, bytesOf("moved"));
      await store.put(to, bytesOf("before"));
      await store.move(from, to);
      assert.deepEqual([await store.get(from), textOf(await store.get(to))], [undefined, "moved"]);
    });

    test("a directory is deleted with all below it, and nothing beside it", async () => {
      const directory = fresh();
      for (const key of ["gone/a", "gone/b/c", "gone.too", "gone-not/d"]) {
        await store.put(`${directory}/${key}`, bytesOf(key));
      }
      await store.deleteDirectory(`${directory}/gone`);
      await store.deleteDirectory(`${directory}/gone`);
      assert.deepEqual((await listNames(store, directory)).sort(), ["gone-not", "gone.too"]);
    });
  });
}
