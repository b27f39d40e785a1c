import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blob, type Connection, connect } from "@lancedb/lancedb";
import { Field, Int64, Schema } from "apache-arrow";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";

const LARGE = Buffer.alloc(9_000_000, "0123456789");

const failure = (call: Promise<unknown>) => call.catch(() => "fails");

/** Does what clients do with blobs, and returns the results. */
async function work(db: Connection): Promise<readonly unknown[]> {
  const values = [Buffer.from("alpha"), null, Buffer.alloc(0), LARGE];
  const rows = values.map((video, id) => ({ id: BigInt(id), video }));
  const schema = new Schema([new Field("id", new Int64()), blob("video")]);
  const table = await db.createTable("clips", rows, { schema });
  const found = await table.query().select(["id"]).withRowId().toArray();
  const ids = found.map((row) => BigInt(row["_rowid"]));
  const files = await table.fetchBlobFiles("video", ids);
  return [
    await table.blobColumns(),
    await table.fetchBlobs("video", ids),
    await table.fetchBlobs("video", [ids[3], ids[0], ids[0]] as bigint[]),
    files.map((file) => file?.size()),
    await files[3]?.readRange(4_000_000n, 8_500_000n),
    await files[0]?.read(),
    await files[2]?.read(),
    await failure(table.fetchBlobs("id", ids)),
    await failure(table.fetchBlobs("video", [77n])),
    await failure(files[3]?.readRange(0n, 9_000_001n) as Promise<unknown>),
  ];
}

describe("blobs through @lancedb/lancedb's remote client", () => {
  let gateway: GatewayProcess;
  let folder: string;
  beforeAll(async () => {
    gateway = await startGateway();
    folder = await mkdtemp(join(tmpdir(), "lance-gateway-blobs-"));
  });
  afterAll(async () => {
    await gateway.close();
    await rm(folder, { recursive: true });
  });

  it("are those of a local directory", async () => {
    const remote = await connect("db://shop", { apiKey: "k", hostOverride: gateway.uri });
    assert.deepEqual(await work(remote), await work(await connect(folder)));
  });
});
