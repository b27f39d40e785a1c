import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { blobStream, patternBytes } from "../fixtures/dir/blobs.ts";
import {
  type DirectoryServer,
  startDirectoryServer,
  startServer,
  type TestServer,
} from "../support/server.ts";

const BLOB = patternBytes(1000);
/** Headers of blobs that clients read. */
const READ = ["content-type", "content-length", "content-range", "accept-ranges", "x-lancedb-version"];

describe("beyond the contract, a REST upstream behind a gateway answers like the upstream itself", () => {
  let [directory, between]: [DirectoryServer | undefined, TestServer | undefined] = [undefined, undefined];
  const ports = () => [directory?.port, between?.port] as const;
  const send = (port: number | undefined, path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}/v1/${path}`, init);
  const post = (port: number | undefined, path: string, body: unknown) =>
    send(port, path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  beforeAll(async () => {
    directory = await startDirectoryServer();
    const uri = `http://127.0.0.1:${directory.port}`;
    between = await startServer(await createRestBackend({ uri, log: pino({ level: "silent" }) }));
    const rows = blobStream([
      { id: 0, blob: BLOB },
      { id: 1, blob: new Uint8Array() },
      { id: 2, blob: null },
    ]);
    const headers = { "content-type": "application/vnd.apache.arrow.stream" };
    const made = await send(directory.port, "table/blobs/create", { method: "POST", headers, body: rows });
    assert.ok(made.ok, await made.text());
  });
  afterAll(async () => {
    await between?.close();
    await directory?.close();
  });

  for (const [what, row, range, status] of [
    ["a whole blob", 0, undefined, 200],
    ["a part", 0, "bytes=10-19", 206],
    ["the end of a blob", 0, "bytes=-5", 206],
    ["a range outside of the blob", 0, "bytes=1000-", 416],
    ["an empty blob", 1, undefined, 200],
    ["a row without a blob", 2, undefined, 204],
  ] as const) {
    test(`reads ${what}`, async () => {
      const answers = ports().map(async (port) => {
        const headers: Record<string, string> = range === undefined ? {} : { range };
        const answer = await send(port, `table/blobs/blob/blob/${row}/bytes`, { headers });
        const found = READ.map((name) =>
          status === 416 && name === "content-length" ? "" : answer.headers.get(name),
        );
        const bytes = status === 416 ? "" : Buffer.from(await answer.arrayBuffer()).toString("hex");
        return [answer.status, found, bytes];
      });
      const [own, through] = await Promise.all(answers);
      assert.deepEqual(through, own);
      assert.equal(own?.[0], status);
    });
  }

  test("describes and drops a materialized view", async () => {
    const created = await post(directory?.port, "materialized_view/v/create", {
      kind: "query",
      source_query: "SELECT id FROM blobs",
      output_schema: "",
    });
    assert.ok(created.ok, await created.text());
    const [own, through] = await Promise.all(
      ports().map(async (port) => (await post(port, "materialized_view/v/describe", {})).json()),
    );
    assert.deepEqual(through, own);
    const dropped = await post(between?.port, "materialized_view/v/drop", {});
    assert.equal(dropped.status, 200, await dropped.text());
    assert.equal((await post(directory?.port, "materialized_view/v/describe", {})).status, 404);
  });
});
