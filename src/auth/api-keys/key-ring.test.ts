import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it, onTestFinished, vi } from "vitest";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { inFastTime } from "../../../test/support/fast-time.ts";
import { makeSilentFile } from "../../../test/support/silent-file.ts";
import { lookNow } from "../../runtime/files/follow.ts";
import { changeKeyFile, drawKey, type KeyRecord, type NewKey } from "./key-file.ts";
import { openKeyRing } from "./key-ring.ts";

const entry = ({ id, hash }: NewKey, name: string, expires?: string): KeyRecord => ({
  ...{ id, hash, name, role: "reader", created: "2026-01-01T00:00:00.000Z" },
  ...(expires !== undefined && { expires }),
});

async function ringOf(...keys: KeyRecord[]) {
  const { path: directory, remove } = await temporaryDirectory();
  const path = join(directory, "keys.json");
  await changeKeyFile(path, () => keys);
  const lines: string[] = [];
  const log = pino({ base: undefined }, { write: (line) => void lines.push(line) });
  const ring = await openKeyRing({ path, log, intervalMs: 5 });
  onTestFinished(async () => {
    ring.close();
    await remove();
  });
  return { path, ring, lines };
}

const nameOf = (found: KeyRecord | string) => (typeof found === "string" ? found : found.name);

describe("a ring of keys", () => {
  it("finds a key by its whole text only", async () => {
    const key = drawKey();
    const { ring } = await ringOf(entry(key, "ann"));
    assert.equal(nameOf(ring.find(key.text)), "ann");
    const last = key.text.endsWith("A") ? "B" : "A";
    for (const wrong of [
      "",
      key.id,
      key.hash,
      `${key.text.slice(0, -1)}${last}`,
      `${key.text} `,
      key.text.toUpperCase(),
      drawKey().text,
      `lgw_${key.id}_${drawKey().text.slice(-43)}`,
      "lgw___proto___x",
    ]) {
      assert.equal(ring.find(wrong), "unknown", wrong);
    }
  });

  it("refuses a key from its expiry on", async () => {
    const [past, future] = [drawKey(), drawKey()];
    const { ring } = await ringOf(
      entry(past, "ann", new Date(Date.now() - 1).toISOString()),
      entry(future, "bob", new Date(Date.now() + 3_600_000).toISOString()),
    );
    assert.equal(ring.find(past.text), "expired");
    assert.equal(nameOf(ring.find(future.text)), "bob");
  });

  it("follows its file, and keeps the keys when the file becomes unreadable", async () => {
    const [first, second] = [drawKey(), drawKey()];
    const { path, ring, lines } = await ringOf(entry(first, "ann"));
    await changeKeyFile(path, () => [entry(second, "bob")]);
    await vi.waitFor(() => assert.equal(ring.find(first.text), "unknown"), { timeout: 60_000 });
    assert.equal(nameOf(ring.find(second.text)), "bob");
    await writeFile(path, "{");
    await vi.waitFor(() => assert.match(lines.join(""), /stay as they were/), { timeout: 60_000 });
    assert.equal(nameOf(ring.find(second.text)), "bob");
  });

  it("keeps the keys while its file does not answer, and follows the file that takes its place", async () => {
    const [first, second] = [drawKey(), drawKey()];
    const { path, ring, lines } = await ringOf(entry(first, "ann"));
    await rm(path);
    await makeSilentFile(path);
    await inFastTime(lookNow);
    assert.match(lines.join(""), /stay as they were.*ETIMEDOUT|ETIMEDOUT.*stay as they were/);
    assert.equal(nameOf(ring.find(first.text)), "ann");
    await rm(path);
    await changeKeyFile(path, () => [entry(second, "bob")]);
    await lookNow();
    assert.equal(nameOf(ring.find(second.text)), "bob");
  });
});
