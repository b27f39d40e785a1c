import assert from "node:assert/strict";
import { test } from "vitest";
import { temporaryDirectory } from "../fixtures/dir/directory-backend.ts";
import { OLD_RELEASES, ROWS_AT_END, workOnOldTable } from "../fixtures/dir/old-writers.ts";
import { runPython } from "./support/python.ts";

for (const release of OLD_RELEASES) {
  test(`pylance reads and writes what is made of a table of pylance ${release}`, async (t) => {
    const path = await workOnOldTable(t, await temporaryDirectory(t), release);
    const read = async () => JSON.parse(await runPython("format_peer.py", "read", path));
    const { rows, scanned, config } = await read();
    assert.deepEqual([rows, scanned, config["ours"]], [ROWS_AT_END, ROWS_AT_END, "yes"]);
    await runPython("format_peer.py", "append", path, "2");
    assert.equal((await read()).scanned, ROWS_AT_END + 2);
  });
}
