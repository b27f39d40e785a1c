import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { type TestContext, test } from "vitest";
import { temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { listNames } from "../storage.ts";
import { publishVersion } from "../versions/publish-version.ts";
import { type Disk, machineDisk } from "./disk.ts";
import { UnsyncedError } from "./local-errors.ts";
import { createLocalStore } from "./local-store.ts";

const BYTES = Buffer.from("bytes");

/** Creates a store that records its calls, such as `syncNames a`, and fails with a code where `fault` returns one. */
async function createWorld(t: TestContext) {
  const root = await temporaryDirectory(t);
  const calls: string[] = [];
  const paths = new Map<number, string>();
  const world = { root, calls, fault: (_call: string): string | undefined => undefined };
  function traced<A extends unknown[], R>(name: string, call: (...args: A) => R) {
    return (...args: A): R => {
      const place = args.slice(0, 2).map((arg) => paths.get(arg as number) ?? arg);
      const named = place.filter((each) => typeof each === "string");
      const path = named.map((each) => relative(root, each).replaceAll(/#\d+/g, "#")).join(" ");
      const text = `${name} ${path || "."}`;
      calls.push(text);
      const code = world.fault(text);
      if (code !== undefined) throw Object.assign(new Error(`${text}: ${code}`), { code });
      const result = call(...args);
      if (name === "open" || name === "create") paths.set(result as number, args[0] as string);
      return result;
    };
  }
  const entries = Object.entries(machineDisk).map(([name, call]) => {
    const wrapped = traced(name, call as (...args: unknown[]) => unknown);
    const isAsync = ["syncBytes", "syncNames", "rename", "touch", "unlink", "rmdir"].includes(name);
    return [name, isAsync ? async (...args: unknown[]) => wrapped(...args) : wrapped];
  });
  const store = createLocalStore(root, Object.fromEntries(entries) as Disk);
  return Object.assign(world, { store });
}

type World = Awaited<ReturnType<typeof createWorld>>;

/** Asserts that calls were made in an order, with any calls in between. */
function assertOrder({ calls }: World, ...expected: string[]): void {
  let from = 0;
  for (const call of expected) {
    const at = calls.indexOf(call, from);
    assert.ok(at >= 0, `${call} is missing after ${calls.slice(0, from).at(-1)} in ${calls.join(", ")}`);
    from = at + 1;
  }
}

const WRITES: Readonly<Record<string, (store: World["store"]) => Promise<unknown>>> = {
  put: (store) => store.put("a/file", BYTES),
  putStream: (store) => store.putStream("a/file", chunks()),
  putIfAbsent: (store) => store.putIfAbsent("a/file", BYTES),
};

async function* chunks(): AsyncIterable<Uint8Array> {
  yield BYTES;
}

for (const [name, write] of Object.entries(WRITES)) {
  const publish = name === "putIfAbsent" ? "link a/file# a/file" : "rename a/file# a/file";

  test(`${name} syncs the bytes before the name and the directory after it`, async (t) => {
    const world = await createWorld(t);
    await write(world.store);
    assertOrder(world, "create a/file#", "syncBytes a/file#", "open a", publish, "syncNames a");
    assertOrder(world, "mkdir a", "syncNames .", publish);
    assert.deepEqual(readdirSync(join(world.root, "a")), ["file"]);
  });

  test(`${name} leaves nothing behind when the bytes cannot be synced`, async (t) => {
    const world = await createWorld(t);
    world.fault = (call) => (call.startsWith("syncBytes") ? "EIO" : undefined);
    await assert.rejects(write(world.store), isUnavailable);
    assert.deepEqual(readdirSync(join(world.root, "a")), []);
  });

  test(`${name} changes nothing without a descriptor for the directory`, async (t) => {
    const world = await createWorld(t);
    await write(world.store);
    await world.store.delete("a/file");
    world.fault = (call) => (call === "open a" ? "EMFILE" : undefined);
    await assert.rejects(write(world.store), isUnavailable);
    assert.deepEqual(readdirSync(join(world.root, "a")), []);
  });

  test(`${name} reports an unknown outcome when the directory cannot be synced`, async (t) => {
    const world = await createWorld(t);
    world.fault = (call) => (call === "syncNames a" ? "EIO" : undefined);
    await assert.rejects(write(world.store), UnsyncedError);
    assert.equal(world.calls.filter((call) => call === "syncNames a").length, 1);
  });

  test(`${name} fails in a new directory whose own name could not be synced`, async (t) => {
    const world = await createWorld(t);
    world.fault = (call) => (call === "syncNames ." ? "EIO" : undefined);
    for (let tries = 0; tries < 2; tries++) await assert.rejects(write(world.store), isUnavailable);
    assert.equal(world.calls.filter((call) => call === "syncNames .").length, 1);
    assert.deepEqual(await listNames(world.store, "a"), []);
  });

  test(`${name} succeeds in a new directory once descriptors are available again`, async (t) => {
    const world = await createWorld(t);
    world.fault = (call) => (call === "open ." ? "EMFILE" : undefined);
    await assert.rejects(write(world.store), isUnavailable);
    world.fault = () => undefined;
    await write(world.store);
    assertOrder(world, publish);
    assertOrder(world, "syncNames .", publish);
  });
}

test("makes both of two writers wait for the name of a new directory that they need", async (t) => {
  const world = await createWorld(t);
  await Promise.all([world.store.put("a/b/one", BYTES), world.store.put("a/b/two", BYTES)]);
  for (const file of ["one", "two"]) {
    assertOrder(world, "syncNames .", `rename a/b/${file}# a/b/${file}`);
    assertOrder(world, "syncNames a", `rename a/b/${file}# a/b/${file}`);
  }
});

test("creates an object with a private key under its final name, and removes it if it cannot be synced", async (t) => {
  const world = await createWorld(t);
  await world.store.create("a/file", BYTES);
  assertOrder(world, "mkdir a", "create a/file", "syncBytes a/file");
  assertOrder(world, "create a/file", "syncNames a");
  for (const failing of ["syncBytes a/other", "syncNames a"]) {
    world.fault = (call) => (call === failing ? "EIO" : undefined);
    await assert.rejects(world.store.create("a/other", BYTES), isUnavailable);
    assert.deepEqual(await listNames(world.store, "a"), ["file"]);
  }
});

test("syncs only the name of an object without bytes", async (t) => {
  const world = await createWorld(t);
  await world.store.create("a/file", new Uint8Array());
  assertOrder(world, "mkdir a", "create a/file", "syncNames a");
  assertOrder(world, "mkdir a", "syncNames .");
  assert.deepEqual(
    world.calls.filter((call) => call.startsWith("syncBytes")),
    [],
  );
  assert.deepEqual(await listNames(world.store, "a"), ["file"]);
});

test("syncs deletions and moves", async (t) => {
  const world = await createWorld(t);
  for (const name of ["a", "b"]) await world.store.put(`${name}/file`, BYTES);
  world.calls.length = 0;
  assert.equal(await world.store.delete("a/file"), true);
  assertOrder(world, "open a", "unlink a/file", "syncNames a");
  // Another process may have deleted the object and ended before its sync.
  world.calls.length = 0;
  assert.equal(await world.store.delete("a/file"), false);
  assertOrder(world, "syncNames a");

  await world.store.move("b/file", "c/file");
  assertOrder(world, "syncBytes b/file", "rename b/file c/file", "syncNames b", "syncNames c");
  assert.equal(await world.store.files.moveDirectory("c", "d"), true);
  assertOrder(world, "rename c d", "syncNames .");
  world.calls.length = 0;
  assert.equal(await world.store.files.moveDirectory("c", "d"), false);
  assertOrder(world, "rename c d", "syncNames .");
});

test("deletes many objects with a single sync of each directory, after all of its deletions", async (t) => {
  const world = await createWorld(t);
  const keys = ["a/1", "a/2", "b/1", "a/none", "none/1"];
  for (const key of keys.slice(0, 3)) await world.store.put(key, BYTES);
  world.calls.length = 0;
  await world.store.deleteAll(keys);
  assert.deepEqual([readdirSync(join(world.root, "a")), readdirSync(join(world.root, "b"))], [[], []]);
  const changes = world.calls.filter((call) => /^(unlink|syncNames)/.test(call));
  assert.deepEqual(changes, [
    ...["unlink a/1", "unlink a/2", "unlink a/none", "syncNames a"],
    ...["unlink b/1", "syncNames b"],
  ]);
});

test("the deletion of many objects reports an unknown outcome when a directory cannot be synced", async (t) => {
  const world = await createWorld(t);
  await world.store.put("a/1", BYTES);
  world.fault = (call) => (call === "syncNames a" ? "EIO" : undefined);
  await assert.rejects(world.store.deleteAll(["a/1", "b/1"]), UnsyncedError);
});

test("deletes the last object of a directory after the deletion of the others is durable", async (t) => {
  const world = await createWorld(t);
  for (const name of ["last", "one", "two"]) await world.store.put(`a/${name}`, BYTES);
  await world.store.deleteDirectory("a", { last: "last" });
  assertOrder(world, "unlink a/one", "unlink a/two", "syncNames a", "unlink a/last", "rmdir a");
  assert.ok(!existsSync(join(world.root, "a")));
  await world.store.deleteDirectory("a", { last: "last" });
});

test("syncs a directory that others wrote, file by file", async (t) => {
  const world = await createWorld(t);
  mkdirSync(join(world.root, "a/b/c"), { recursive: true });
  for (const name of ["a/1", "a/b/2", "a/b/c/3"]) writeFileSync(join(world.root, name), BYTES);
  await world.store.files.syncTree("a");
  for (const file of ["a/1", "a/b/2", "a/b/c/3"]) assertOrder(world, `syncBytes ${file}`);
  for (const directory of ["a", "a/b", "a/b/c"]) assertOrder(world, `syncNames ${directory}`);
  world.fault = (call) => (call === "syncBytes a/b/2" ? "EIO" : undefined);
  await assert.rejects(world.store.files.syncTree("a"), UnsyncedError);
});

test("does not report a version as committed if its name cannot be synced, and does not put it again", async (t) => {
  const world = await createWorld(t);
  world.fault = (call) => (call === "syncNames versions" ? "EIO" : undefined);
  const publish = publishVersion(world.store, { key: "versions/1.manifest", bytes: BYTES });
  await assert.rejects(publish, UnsyncedError);
  assert.equal(world.calls.filter((call) => call.startsWith("link")).length, 1);
});

test("syncs a version that another call has put with equal bytes before acknowledging it", async (t) => {
  const world = await createWorld(t);
  const manifest = { key: "versions/1.manifest", bytes: BYTES };
  mkdirSync(join(world.root, "versions"));
  writeFileSync(join(world.root, manifest.key), BYTES);
  world.fault = (call) => (call === "create versions/1.manifest#" ? "EMFILE" : undefined);
  assert.equal(await publishVersion(world.store, manifest), true);
  assertOrder(world, "create versions/1.manifest#", "syncBytes versions/1.manifest", "syncNames versions");
  world.fault = (call) => (/^create|syncNames/.test(call) ? "EIO" : undefined);
  await assert.rejects(publishVersion(world.store, manifest), UnsyncedError);
  assert.equal(await publishVersion(world.store, { ...manifest, bytes: Buffer.from("others") }), false);
});

function isUnavailable(error: unknown): boolean {
  return isLanceError(error, "ServiceUnavailable") && !(error instanceof UnsyncedError);
}

test("a further sync of files syncs the directories above theirs only if these are others by now", async (t) => {
  const world = await createWorld(t);
  const { root, calls, store } = world;
  const write = (name: string) => {
    mkdirSync(join(root, "base/t/data"), { recursive: true });
    writeFileSync(join(root, "base/t/data", name), BYTES);
    calls.length = 0;
    return store.files.syncObjects([`base/t/data/${name}`], "base");
  };
  const above = () => ["base", "base/t"].filter((name) => calls.includes(`syncNames ${name}`));
  await write("a");
  assert.deepEqual(above(), ["base", "base/t"]);
  await write("b");
  assert.deepEqual(above(), []);
  assert.ok(calls.includes("syncBytes base/t/data/b") && calls.includes("syncNames base/t/data"));
  rmSync(join(root, "base/t"), { recursive: true });
  world.fault = (call) => (call === "syncNames base/t" ? "EIO" : undefined);
  await assert.rejects(write("c"), UnsyncedError);
  world.fault = () => undefined;
  await write("d");
  assert.deepEqual(above(), ["base", "base/t"]);
  // A directory that was moved below a new one, whose name nobody has synced.
  renameSync(join(root, "base/t"), join(root, "base/old"));
  mkdirSync(join(root, "base/t"));
  renameSync(join(root, "base/old/data"), join(root, "base/t/data"));
  await write("e");
  assert.deepEqual(above(), ["base", "base/t"]);
});

test("an object counts as written when it is moved, since gc takes old ones that nothing refers to yet", async (t) => {
  const world = await createWorld(t);
  const { root, store } = world;
  for (const fault of [undefined, "EPERM"]) {
    await store.put("staged/file", BYTES);
    utimesSync(join(root, "staged/file"), 1, 1);
    world.fault = (call) => (call.startsWith("touch") ? fault : undefined);
    await store.move("staged/file", "data/file");
    const { modifiedMillis = 0 } = (await store.head("data/file")) ?? {};
    if (fault === undefined) assert.ok(modifiedMillis > Date.now() - 60_000);
    else assert.equal(modifiedMillis, 1000, "the file of another user is moved, too");
  }
});
