import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, vi } from "vitest";
import { createRenewedOptions, lifeOf } from "./renewed-options.ts";

const MINUTE = 60_000;

const vended = (key: string, lifeMs: number) => ({
  aws_access_key_id: key,
  expires_at_millis: String(Date.now() + lifeMs),
});

describe("options whose credentials expire", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());

  it("are renewed once for all who wait, by a running call, before they expire", async () => {
    const options = createRenewedOptions(vended("a", 10 * MINUTE));
    let asked = 0;
    const end = options.addSource(async () => {
      asked += 1;
      return vended(`b${asked}`, 10 * MINUTE);
    });
    vi.setSystemTime(Date.now() + 7 * MINUTE);
    assert.equal((await options.current())["aws_access_key_id"], "a");
    vi.setSystemTime(Date.now() + 1.5 * MINUTE);
    const both = await Promise.all([options.current(), options.current()]);
    assert.deepEqual(
      both.map((each) => each["aws_access_key_id"]),
      ["b1", "b1"],
    );
    assert.equal(asked, 1);
    end();
    vi.setSystemTime(Date.now() + 20 * MINUTE);
    assert.equal((await options.current())["aws_access_key_id"], "b1");
  });

  it("stay while they are valid if the catalog fails, and fail with its error afterwards", async () => {
    const options = createRenewedOptions(vended("a", 10 * MINUTE));
    let asked = 0;
    options.addSource(async () => {
      asked += 1;
      throw new Error("the catalog fails");
    });
    vi.setSystemTime(Date.now() + 9 * MINUTE);
    for (let each = 0; each < 3; each++) assert.equal((await options.current())["aws_access_key_id"], "a");
    assert.equal(asked, 1);
    vi.setSystemTime(Date.now() + 2 * MINUTE);
    await assert.rejects(options.current(), /the catalog fails/);
  });

  it("take those of a newer description from the time at which they should be renewed", async () => {
    const options = createRenewedOptions(vended("a", 10 * MINUTE));
    options.offer(vended("b", 60 * MINUTE));
    assert.equal((await options.current())["aws_access_key_id"], "a");
    vi.setSystemTime(Date.now() + 9 * MINUTE);
    options.offer(vended("c", 60 * MINUTE));
    assert.equal((await options.current())["aws_access_key_id"], "c");
  });

  it("are used for 15 minutes at most, and tell the engine when to ask again", async () => {
    const now = Date.now();
    assert.deepEqual(lifeOf(vended("a", 720 * MINUTE)), {
      ends: now + 15 * MINUTE,
      renewAt: now + 12 * MINUTE,
    });
    const { expires_at_millis, refresh_offset_millis } = await createRenewedOptions(
      vended("a", 720 * MINUTE),
    ).current();
    assert.deepEqual(
      [expires_at_millis, refresh_offset_millis],
      [String(now + 15 * MINUTE), String(3 * MINUTE)],
    );
  });
});
