import assert from "node:assert/strict";
import { appendFile, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it, type TestContext } from "vitest";
import { eventOf } from "../../test/fixtures/events.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { openJournal } from "./journal.ts";

async function fileFor({ onTestFinished }: TestContext) {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const file = join(path, "waiting.jsonl");
  const warnings: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void warnings.push(line) });
  return { file, warnings, open: () => openJournal(file, log) };
}

describe("the journal of events", () => {
  it("keeps, over a run that was killed, what each receiver has not got", async (context) => {
    const { open } = await fileFor(context);
    // A killed run closes nothing.
    const journal = await open();
    const [a, b, c] = [eventOf("a"), eventOf("b"), eventOf("c")] as const;
    for (const event of [a, b, c]) await journal.add({ event, to: ["x", "y"] });
    await journal.end(a.id, "x");
    await journal.end(b.id, "x");
    await journal.end(b.id, "y");
    const { left, close } = await open();
    assert.deepEqual(left, [
      { event: JSON.parse(JSON.stringify(a)), to: ["y"] },
      { event: JSON.parse(JSON.stringify(c)), to: ["x", "y"] },
    ]);
    await close();
    await journal.close();
  });

  it("leaves a line out that broke off, says so, and appends whole lines after it", async (context) => {
    const { open, file, warnings } = await fileFor(context);
    const first = await open();
    const event = eventOf("a");
    await first.add({ event, to: ["x"] });
    await first.close();
    await appendFile(file, '{"event":{"specv');
    const second = await open();
    assert.equal(warnings.length, 1);
    await second.add({ event: eventOf("b"), to: ["x"] });
    await second.close();
    const third = await open();
    assert.deepEqual(
      third.left.map(({ event: each }) => each.subject),
      ["a", "b"],
    );
    await third.close();
  });

  it("does not grow with what was delivered", async (context) => {
    const { open, file } = await fileFor(context);
    const journal = await open();
    const kept = eventOf("kept");
    await journal.add({ event: kept, to: ["x"] });
    for (let round = 0; round < 40; round++) {
      const events = Array.from({ length: 100 }, () => eventOf("t".repeat(200)));
      await Promise.all(events.map((event) => journal.add({ event, to: ["x"] })));
      await Promise.all(events.map(({ id }) => journal.end(id, "x")));
    }
    assert.ok((await stat(file)).size < 1.2 * 1024 ** 2);
    await journal.close();
    const { left, close } = await open();
    assert.deepEqual(
      left.map(({ event }) => event.id),
      [kept.id],
    );
    await close();
    assert.equal((await readFile(file, "utf8")).split("\n").length, 2);
  });

  it("is for its owner alone", async (context) => {
    const { open, file } = await fileFor(context);
    await (await open()).close();
    assert.equal((await stat(file)).mode & 0o777, 0o600);
  });
});
