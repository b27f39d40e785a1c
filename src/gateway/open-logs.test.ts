import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it, type TestContext } from "vitest";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { isLanceError } from "../namespace/errors.ts";
import { openAudit } from "./open-logs.ts";

const UNPROVEN = true;

async function open({ onTestFinished }: TestContext, options: { maxBytes?: number; required?: boolean }) {
  const { path: folder, remove } = await temporaryDirectory();
  const { maxBytes: auditMaxBytes, required: auditRequired = false } = options;
  const chosen = { auditLog: join(folder, "audit.jsonl"), auditRequired, auditMaxBytes, auditFiles: 2 };
  const trail = await openAudit(chosen, pino({ level: "silent" }), () => {});
  assert.ok(trail !== undefined);
  onTestFinished(async () => {
    await trail.close();
    await remove();
  });
  const linesOf = async (start: string) => {
    const names = (await readdir(folder)).filter((name) => name.startsWith(start));
    const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
    return texts.flatMap((text) => text.split("\n").slice(0, -1));
  };
  return { trail, folder, linesOf };
}

describe("an audit log of a bounded size", () => {
  it("keeps the lines of callers who are known, however many calls without credentials it refuses", async (context) => {
    const { trail, linesOf } = await open(context, { maxBytes: 100 });
    await trail.write("etl drops a table", !UNPROVEN);
    for (let call = 0; call < 100; call++) await trail.write(`refused ${call}`, UNPROVEN);
    await trail.write("etl lists", !UNPROVEN);
    const refused = await linesOf("audit.jsonl.unauthenticated");
    assert.deepEqual(
      (await linesOf("audit.jsonl")).filter((line) => !refused.includes(line)),
      ["etl drops a table", "etl lists"],
    );
    assert.ok(refused.includes("refused 99") && refused.length < 30);
  });

  it("takes lines again after a fault, because that of a refused call tries", async (context) => {
    const { trail, folder, linesOf } = await open(context, { maxBytes: 1, required: true });
    const isFull = (error: unknown) => isLanceError(error, "ServiceUnavailable");
    // Nothing can be appended to a directory.
    await rename(join(folder, "audit.jsonl"), join(folder, "moved"));
    await mkdir(join(folder, "audit.jsonl"));
    await assert.rejects(trail.write("etl lists", !UNPROVEN), isFull);
    assert.throws(() => trail.requireWritable(), isFull);
    await rmdir(join(folder, "audit.jsonl"));
    await trail.write("refused", UNPROVEN);
    trail.requireWritable();
    assert.deepEqual(await linesOf("audit.jsonl"), ["refused"]);
  });

  it("has a single file where its size has no bound", async (context) => {
    const { trail, folder, linesOf } = await open(context, {});
    await trail.write("refused", UNPROVEN);
    assert.deepEqual([await readdir(folder), await linesOf("audit.jsonl")], [["audit.jsonl"], ["refused"]]);
  });
});
