import assert from "node:assert/strict";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { lookNow, openFollowed, stampOfFiles } from "./follow.ts";

/** Follows a text in memory. */
async function followText(options: { readonly waitsForRest?: boolean; readonly intervalMs?: number } = {}) {
  const world = { stamp: "1", text: "a", fault: "", reads: 0, looks: 0, isWritten: false };
  const taken: string[] = [];
  const failures: string[] = [];
  const open = openFollowed({
    async stamp() {
      world.looks += 1;
      if (world.isWritten) world.stamp += "+";
      return world.stamp;
    },
    async read() {
      world.reads += 1;
      const { text } = world;
      // A change in the middle of the first reading.
      if (world.reads === 1) world.stamp += "'";
      await null;
      if (world.fault !== "") throw new Error(world.fault);
      return text;
    },
    take: (text) => void taken.push(text),
    failed: (error) => void failures.push((error as Error).message),
    intervalMs: 2,
    ...options,
  });
  const { first, close } = await open;
  onTestFinished(close);
  const looks = async (count: number) => {
    const wanted = world.looks + count;
    await expect.poll(() => world.looks).toBeGreaterThanOrEqual(wanted);
  };
  return { world, first, close, taken, failures, looks };
}

describe("what is followed", () => {
  it("is read after each change of its stamp, also one during the first reading, and only then", async () => {
    const { world, first, taken, looks } = await followText();
    assert.equal(first, "a");
    await expect.poll(() => taken).toEqual(["a"]);
    Object.assign(world, { stamp: "2", text: "b" });
    await expect.poll(() => taken).toEqual(["a", "b"]);
    world.text = "c";
    await looks(3);
    assert.deepEqual(taken, ["a", "b"]);
  });

  it("is read at once when somebody asks, without waiting for the next look, for the rest or after a failure", async () => {
    const { world, taken, failures } = await followText({ waitsForRest: true, intervalMs: 3_600_000 });
    await lookNow();
    assert.deepEqual(taken, ["a"]);
    Object.assign(world, { stamp: "2", text: "b", fault: "EIO" });
    await Promise.all([lookNow(), lookNow()]);
    assert.deepEqual([taken, failures], [["a"], ["EIO"]]);
    world.fault = "";
    await lookNow();
    assert.deepEqual(taken, ["a", "b"]);
  });

  it("is read again after a failure, although its stamp stays, and each reason is told once", async () => {
    const { world, taken, failures } = await followText();
    await expect.poll(() => taken).toEqual(["a"]);
    Object.assign(world, { stamp: "2", text: "b", fault: "EMFILE" });
    const { reads } = world;
    await expect.poll(() => world.reads).toBeGreaterThan(reads + 3);
    world.fault = "EIO";
    await expect.poll(() => failures).toEqual(["EMFILE", "EIO"]);
    assert.deepEqual(taken, ["a"]);
    world.fault = "";
    await expect.poll(() => taken).toEqual(["a", "b"]);
  });

  it("is read at once when it changes during the pause after a failure", async () => {
    const { world, taken, failures } = await followText();
    Object.assign(world, { stamp: "2", fault: "wrong" });
    // From here on, the pause is longer than the test.
    const { reads } = world;
    await expect.poll(() => world.reads).toBeGreaterThan(reads + 8);
    Object.assign(world, { stamp: "3", text: "c", fault: "" });
    const { looks } = world;
    await expect.poll(() => taken.at(-1)).toBe("c");
    assert.ok(world.looks - looks < 256);
    assert.deepEqual(failures, ["wrong"]);
  });

  it("is not read while it still changes, if it waits for rest", async () => {
    const { world, taken, looks } = await followText({ waitsForRest: true });
    await expect.poll(() => taken).toEqual(["a"]);
    Object.assign(world, { text: "half", isWritten: true });
    await looks(5);
    assert.deepEqual(taken, ["a"]);
    Object.assign(world, { text: "whole", isWritten: false });
    await expect.poll(() => taken).toEqual(["a", "whole"]);
  });

  it("is left alone after the end", async () => {
    const { world, close, taken } = await followText();
    await expect.poll(() => taken).toEqual(["a"]);
    close();
    const { looks } = world;
    world.stamp = "2";
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(world.looks <= looks + 1);
    assert.deepEqual(taken, ["a"]);
  });
});

describe("the stamp of files", () => {
  it("changes when a file is written, replaced or removed, and not otherwise", async () => {
    const { path: folder, remove } = await temporaryDirectory();
    onTestFinished(remove);
    const [one, other] = [join(folder, "one"), join(folder, "other")];
    const seen = new Set<string>();
    const look = async () => seen.add(await stampOfFiles([one, other])).size;
    assert.equal(await look(), 1);
    await writeFile(one, "1");
    assert.equal(await look(), 2);
    await writeFile(one, "12");
    assert.equal(await look(), 3);
    assert.equal(await look(), 3);
    await writeFile(other, "12");
    await look();
    await rename(other, one);
    assert.equal(await look(), 5);
    await rm(one);
    assert.equal(await look(), 5);
  });
});
