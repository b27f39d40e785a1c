import assert from "node:assert/strict";
import { test } from "vitest";
import type { Guarded } from "./call-data.ts";
import { readEarly } from "./early-data.ts";

const newest = {} as Guarded;
const read = async (data: Guarded) => (data === newest ? "newest" : "early");

test("early data that cannot be opened are not answered, unless they are the newest", async () => {
  const failed = () => {
    const data = Promise.reject<Guarded>(new Error("damaged"));
    data.catch(() => {});
    return data;
  };
  const early = (isNewest: boolean) => ({ data: failed(), isNewest: Promise.resolve(isNewest) });
  assert.equal(await readEarly(early(false), async () => newest, read), "newest");
  await assert.rejects(
    readEarly(early(true), async () => newest, read),
    /damaged/,
  );
});
