import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { fakeBackend } from "../../test/support/server.ts";
import { createReadiness } from "../server/app/probes.ts";
import { announceReadiness } from "./announce-readiness.ts";

// Time passes between its checks of the backends.
describe("announceReadiness", { concurrent: true }, () => {
  it("turns negative when the only backend is gone, and positive when it is back", async ({
    expect,
    onTestFinished,
  }) => {
    const readiness = createReadiness();
    onTestFinished(readiness.close);
    let isThere: boolean | undefined = true;
    const ready = async () => {
      if (isThere === undefined) throw new Error("gone");
      return isThere;
    };
    void announceReadiness(() => [{ ...fakeBackend({}), ready }], readiness);
    await expect.poll(() => readiness.ready).toBe(true);
    isThere = undefined;
    await expect.poll(() => readiness.ready).toBe(false);
    isThere = true;
    await expect.poll(() => readiness.ready).toBe(true);
  });

  it("stays positive while one of several backends is ready, and follows backends that are replaced", async ({
    expect,
    onTestFinished,
  }) => {
    const readiness = createReadiness();
    onTestFinished(readiness.close);
    const backend = (isReady: boolean) => ({ ...fakeBackend({}), ready: async () => isReady });
    let backends = [backend(false), backend(true)];
    void announceReadiness(() => backends, readiness);
    await expect.poll(() => readiness.ready).toBe(true);
    backends = [backend(false)];
    await expect.poll(() => readiness.ready).toBe(false);
    assert.equal(readiness.closed, false);
  });
});
