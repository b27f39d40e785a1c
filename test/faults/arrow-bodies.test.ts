import assert from "node:assert/strict";
import { Field, List, Null, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { PYARROW_STREAMS } from "../fixtures/arrow/pyarrow-streams.ts";
import { attackWithArrowBodies } from "../support/arrow-attack.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { lz4Bomb, sharedSchemaStream, sharedViews, withNumber } from "../support/hostile-arrow.ts";
import { sendHttp } from "../support/http.ts";
import { startProgram } from "../support/program.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";

/** Number of bodies; `ARROW_BODIES=30000` is the long run. */
const BODIES = repeats("ARROW_BODIES", 400);

/** Equal seeds produce equal bodies. */
const SEED = seedOf("ARROW_SEED");

test("a server answers mutated Arrow bodies with 200 or 4xx and goes on", async (t) => {
  await t.annotate(`ARROW_SEED=${SEED} ARROW_BODIES=${BODIES}`);
  await t.annotate(JSON.stringify(await attackWithArrowBodies(BODIES, SEED)));
});

test("a server refuses small Arrow bodies that unpack to more than it may hold", async () => {
  const directory = await temporaryDirectory();
  const program = startProgram(
    "serve",
    "--root",
    directory.path,
    "--port",
    "0",
    "--max-buffered-size",
    "64MiB",
  );
  try {
    const port = await program.listening();
    const nulls = new Table({ nothing: vectorFromArray(Array(12_345).fill(null), new Null()) });
    const lists = new Table({
      list: vectorFromArray([Array(12_345).fill(null)], new List(new Field("item", new Null(), true))),
    });
    const bodies = [
      { what: "fields that share their children", body: sharedSchemaStream(30), status: 400 },
      { what: "an LZ4 frame that is larger than it says", body: lz4Bomb(100_000), status: 400 },
      {
        what: "rows of nothing but nulls",
        body: withNumber(tableToIPC(nulls, "stream"), 12_345n, 2n ** 52n),
        status: 413,
      },
      {
        what: "lists of nothing but nulls",
        body: withNumber(withNumber(tableToIPC(lists, "stream"), -1n, 12_345n), 12_345n, 2n ** 31n),
        status: 413,
      },
      { what: "many views of a text", body: sharedViews(), status: 413 },
      {
        what: "buffers that unpack to more than the process may hold",
        body: withNumber(Buffer.from(PYARROW_STREAMS.zstd, "base64"), 1100n, 100n * 1048576n),
        status: 413,
      },
    ];
    for (const { what, body, status } of bodies) {
      const headers = { "content-type": "application/vnd.apache.arrow.stream" };
      const answer = await sendHttp(port, { path: "/v1/table/t/create", headers, body });
      assert.equal(answer.status, status, `${what}: ${answer.bytes}`);
    }
    assert.equal((await sendHttp(port, { method: "GET", path: "/readyz" })).status, 200);
  } finally {
    program.child.kill("SIGKILL");
    await program.ended;
    await directory.remove();
  }
});
