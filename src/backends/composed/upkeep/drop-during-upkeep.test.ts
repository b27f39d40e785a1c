import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { expect, test } from "vitest";
import { people, personStream } from "../../../../test/support/arrow.ts";
import { createCaller } from "../../../../test/support/caller.ts";
import { S3_BUCKET, startS3Server } from "../../../../test/support/s3-server.ts";
import {
  DeclareTableResponseSchema,
  DescribeTableResponseSchema,
  DropTableResponseSchema,
} from "../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { createComposedBackend } from "../index.ts";

const ID = ["t"];

test("a drop waits for upkeep of its table, whose commit would be one of a new table in the same place", async (t) => {
  const bucket = await startS3Server();
  const events: string[] = [];
  let isDeclared = false;
  const place = { location: `s3://${S3_BUCKET}/t.lance`, storageOptions: bucket.options };
  const catalog: Backend = {
    name: "catalog",
    operations: {
      async describeTable() {
        if (!isDeclared) throw new LanceError("TableNotFound", "no such table");
        return create(DescribeTableResponseSchema, place);
      },
      async declareTable() {
        isDeclared = true;
        return create(DeclareTableResponseSchema, place);
      },
      async dropTable() {
        events.push("dropped");
        isDeclared = false;
        for (const key of bucket.objects.keys()) if (key.startsWith("t.lance/")) bucket.objects.delete(key);
        return create(DropTableResponseSchema);
      },
    },
    ready: async () => true,
    close: async () => {},
  };
  const metrics = {
    done: ({ fragmentsRemoved }: { fragmentsRemoved: number }) => {
      if (fragmentsRemoved > 0) events.push("joined");
    },
    missed() {},
    watch: () => () => {},
  };
  const times = { settleMs: 300, waitMs: 60_000, quietMs: 50 };
  const backend = createComposedBackend(catalog, {
    log: pino({ level: "silent" }),
    upkeep: { sweeps: false, times, metrics },
  });
  t.onTestFinished(async () => {
    await backend.close();
    await bucket.close();
  });
  const client = createCaller({ backend, limits: { maxUploadBytes: 2 ** 20 } });
  await client.createTable({ id: ID }, personStream(people(1)));
  for (let from = 1; from < 6; from++)
    await client.insertIntoTable({ id: ID }, personStream(people(1, from)));
  const joining = Promise.withResolvers<void>();
  bucket.intercept = ({ kind, key }) => {
    if (kind.startsWith("PUT") && key.startsWith("t.lance/data/")) {
      // A run may have been between two inserts.
      events.length = bucket.delayMs === 0 ? 0 : events.length;
      bucket.delayMs = 30;
      joining.resolve();
    }
    return false;
  };
  await joining.promise;
  await client.dropTable({ id: ID });
  bucket.intercept = undefined;
  bucket.delayMs = 0;
  await client.createTable({ id: ID }, personStream(people(1)));
  await expect.poll(() => events.length).toBe(2);
  assert.deepEqual(events, ["joined", "dropped"]);
  assert.equal((await client.countTableRows({ id: ID })).count, 1n);
});
