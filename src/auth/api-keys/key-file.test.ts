import assert from "node:assert/strict";
import { lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { atOnce, ITEMS_PER_STEP } from "../../runtime/pace.ts";
import { changeKeyFile, drawKey, type KeyRecord, parseKeys, readKeyFile } from "./key-file.ts";

function record(name: string): KeyRecord {
  const { id, hash } = drawKey();
  return { id, name, role: "reader", hash, created: "2026-01-01T00:00:00.000Z" };
}

const text = (...keys: object[]) => JSON.stringify({ keys });

describe("a file of keys", () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  beforeAll(async () => {
    directory = await temporaryDirectory();
  });
  afterAll(() => directory.remove());

  it("is created for its owner alone, and leaves no lock", async () => {
    const path = join(directory.path, "new.json");
    const key = record("ann");
    await changeKeyFile(path, (keys) => [...keys, key]);
    assert.deepEqual(await readKeyFile(path), [key]);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(directory.path), ["new.json"]);
  });

  it("stays as it was when a change fails", async () => {
    const path = join(directory.path, "kept.json");
    await changeKeyFile(path, () => [record("ann")]);
    const before = await readFile(path, "utf8");
    await assert.rejects(
      changeKeyFile(path, () => {
        throw new Error("no such key");
      }),
      /no such key/,
    );
    assert.equal(await readFile(path, "utf8"), before);
    await changeKeyFile(path, (keys) => [...keys, record("bob")]);
  });

  it("is replaced where a symbolic link leads to, and keeps its mode", async () => {
    const folder = join(directory.path, "shared");
    await mkdir(folder);
    const [file, link] = [join(folder, "keys.json"), join(directory.path, "link.json")];
    await writeFile(file, text(), { mode: 0o640 });
    await symlink(file, link);
    const key = record("ann");
    await changeKeyFile(link, (keys) => [...keys, key]);
    assert.deepEqual(await readKeyFile(file), [key]);
    assert.ok((await lstat(link)).isSymbolicLink());
    assert.equal((await stat(file)).mode & 0o777, 0o640);
    assert.deepEqual(await readdir(folder), ["keys.json"]);
  });

  it("is parsed in steps when it has many keys", () => {
    const keys = Array.from({ length: 4 * ITEMS_PER_STEP }, (_, i) => record(`caller-${i}`));
    const steps = parseKeys(text(...keys), "keys.json");
    for (let pause = 0; pause < 4; pause++) assert.equal(steps.next().done, false);
    assert.deepEqual(steps.next(), { value: keys, done: true });
  });

  it("is changed by a single process at a time", async () => {
    const path = join(directory.path, "busy.json");
    await writeFile(`${path}.lock`, "");
    await assert.rejects(
      changeKeyFile(path, (keys) => keys),
      /another process changes .*busy\.json; if none does, remove .*busy\.json\.lock/,
    );
    assert.deepEqual(
      (await readdir(directory.path)).filter((name) => name.startsWith("busy")),
      ["busy.json.lock"],
    );
  });

  const key = record("ann");
  for (const [fault, broken, message] of [
    ["no JSON", "{", /is not a file of keys/],
    ["no list", "{}", /is not a file of keys/],
    ["an entry that is no object", text(1 as never), /keys\[0\] must be an object/],
    ["a missing role", text({ ...key, role: undefined }), /keys\[0\]\.role must be a text/],
    [
      "an unknown role",
      text(key, { ...record("bob"), role: "king" }),
      /keys\[1\]\.role must be one of owner/,
    ],
    ["a hash of another form", text({ ...key, hash: "md5:00" }), /keys\[0\]\.hash must be/],
    ["an id of another form", text({ ...key, id: "../../etc" }), /keys\[0\]\.id must have/],
    ["a time that is none", text({ ...key, expires: "soon" }), /keys\[0\]\.expires must be a time/],
    ["a restriction that nobody knows", text({ ...key, hours: "8-17" }), /keys\[0\]\.hours is not known/],
    ["a restriction that is no list", text({ ...key, scope: "a" }), /keys\[0\]\.scope must be a list/],
    ["a restriction to the root", text({ ...key, scope: ["$"] }), /keys\[0\]\.scope has a mistake: the root/],
    ["a restriction to no object", text({ ...key, scope: ["a$$b"] }), /scope has a mistake: .*empty name/],
    ["groups that are no texts", text({ ...key, groups: [1] }), /keys\[0\]\.groups must be a list/],
    ["an id twice", text(key, key), /twice/],
  ] as const) {
    it(`with ${fault} is refused, without any hash in the text`, () => {
      assert.throws(
        () => atOnce(parseKeys(broken, "keys.json")),
        (error: Error) => {
          assert.match(error.message, message);
          assert.match(error.message, /^keys\.json/);
          assert.doesNotMatch(error.message, /sha256:[A-Za-z0-9_-]/);
          return true;
        },
      );
    });
  }
});
