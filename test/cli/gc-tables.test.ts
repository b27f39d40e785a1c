import assert from "node:assert/strict";
import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { runCommand } from "../support/run-command.ts";

const DAY_MS = 24 * 60 * 60_000;

describe("gc in tables", () => {
  let folder: string;
  let remove: () => Promise<void>;
  const run = (...args: readonly string[]) =>
    runCommand([...args, "--root", join(folder, "catalog")], { XDG_CONFIG_HOME: folder });

  /** Leaves a file without a version in the table. */
  async function leave(name: string, days: number): Promise<void> {
    const file = join(folder, "catalog", "data", "t.lance", "data", name);
    await writeFile(file, "rows");
    const written = new Date(Date.now() - days * DAY_MS);
    await utimes(file, written, written);
  }
  const collect = async (...args: readonly string[]) => {
    const { leftovers } = JSON.parse(await run("gc", "--json", ...args));
    return (leftovers as { action: string; kind: string; path: string }[]).map(
      ({ action, kind, path }) => `${action} ${kind} ${path}`,
    );
  };

  beforeAll(async () => {
    ({ path: folder, remove } = await temporaryDirectory());
    await writeFile(join(folder, "people.arrows"), personStream(people(5)));
    await run("import", join(folder, "people.arrows"), "t");
    await leave("new.lance", 0);
    await leave("recent.lance", 6);
    await leave("old.lance", 8);
  });
  afterAll(() => remove());

  const line = (action: string, name: string) => `${action} table file t.lance/data/${name}.lance`;

  it("finds files that are seven days old, since other programs commit late", async () => {
    assert.deepEqual(await collect(), [line("would remove", "old")]);
    assert.deepEqual(await collect("--older-than", "30d"), []);
    assert.deepEqual(await collect("--delete", "--yes", "--older-than", "2h"), [line("removed", "old")]);
  });

  it("finds younger files if nothing else writes", async () => {
    assert.deepEqual(await collect("--exclusive"), [line("would remove", "recent")]);
    const all = await collect("--exclusive", "--delete", "--yes", "--older-than", "0s");
    assert.deepEqual(all.sort(), [line("removed", "new"), line("removed", "recent")]);
    assert.equal((await run("count", "t")).trim(), "5");
  });
});
