import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, expect, type TestContext, test } from "vitest";
import { cut, people, personStream, rowsOf } from "../../../test/support/arrow.ts";
import { createCaller } from "../../../test/support/caller.ts";
import { refused } from "../../../test/support/expect.ts";
import { S3_BUCKET, startS3Server } from "../../../test/support/s3-server.ts";
import {
  DeclareTableResponseSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { UpkeepOptions } from "../dir/upkeep/upkeep.ts";
import { createComposedBackend } from "./index.ts";

const ID = ["t"];
/** Life of credentials, and time for a request, in milliseconds. */
const LIFE_MS = 1_500;
const REQUEST_MS = 400;

/** Opens a catalog that hands out credentials of a short life for a bucket that refuses those of the past. */
async function open(t: TestContext, upkeep?: UpkeepOptions) {
  const bucket = await startS3Server();
  const ends = new Map<string, number>();
  const catalog = { isDenied: false, isDeclared: false };
  const location = `s3://${S3_BUCKET}/t.lance`;
  bucket.intercept = ({ headers }, response) => {
    const key = /Credential=([^/]+)\//.exec(headers.authorization ?? "")?.[1] ?? "";
    // The request was on its way for a while.
    if (Date.now() - bucket.delayMs < (ends.get(key) ?? 0)) return false;
    response.writeHead(400).end("<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>");
    return true;
  };
  const vend = () => {
    if (catalog.isDenied) throw new LanceError("PermissionDenied", "not yours any more");
    const key = `key-${ends.size}`;
    ends.set(key, Date.now() + LIFE_MS);
    return {
      ...bucket.options,
      aws_access_key_id: key,
      aws_session_token: `token-${ends.size}`,
      expires_at_millis: String(ends.get(key)),
    };
  };
  const upstream: Backend = {
    name: "catalog",
    operations: {
      async describeTable() {
        if (!catalog.isDeclared) throw new LanceError("TableNotFound", "no such table");
        return create(DescribeTableResponseSchema, { location, storageOptions: vend() });
      },
      async declareTable() {
        catalog.isDeclared = true;
        return create(DeclareTableResponseSchema, { location, storageOptions: vend() });
      },
    },
    ready: async () => true,
    close: async () => {},
  };
  const log = pino({ level: "silent" });
  const backend = createComposedBackend(upstream, { log, upkeep });
  const withoutUpkeep = createComposedBackend(upstream, { log });
  t.onTestFinished(async () => {
    await Promise.all([backend.close(), withoutUpkeep.close()]);
    await bucket.close();
  });
  const limits = { maxUploadBytes: 2 ** 26 };
  return {
    bucket,
    catalog,
    client: createCaller({ backend, limits }),
    /** Client of another gateway, which has no upkeep. */
    writer: createCaller({ backend: withoutUpkeep, limits }),
    keys: () => ends.size,
  };
}

/** Sends bytes over some time. */
async function* slowly(bytes: Uint8Array, ms: number): AsyncIterable<Uint8Array> {
  const pieces = 5;
  for await (const piece of cut(bytes, Math.ceil(bytes.byteLength / pieces))) {
    await sleep(ms / pieces);
    yield piece;
  }
}

describe("credentials that expire within a call", () => {
  test("are renewed while a scan reads and an upload arrives", async (t) => {
    const { bucket, client, keys } = await open(t);
    await client.createTable({ id: ID }, personStream(people(50)));
    const before = keys();
    await client.insertIntoTable({ id: ID }, slowly(personStream(people(50, 50)), 2 * LIFE_MS));
    assert.ok(keys() > before + 1, "an upload renews its credentials");
    // Each request in turn takes a good part of the life of the credentials.
    bucket.delayMs = REQUEST_MS;
    const [asked, started] = [keys(), Date.now()];
    assert.equal(rowsOf((await client.queryTable({ id: ID })).bytes).length, 100);
    assert.ok(Date.now() - started > LIFE_MS);
    assert.ok(keys() > asked + 1, "a scan renews its credentials");
  });

  test("are renewed while upkeep works on a table", async (t) => {
    const runs: number[] = [];
    const metrics = {
      done: ({ fragmentsRemoved }: { fragmentsRemoved: number }) => void runs.push(fragmentsRemoved),
      missed() {},
      watch: () => () => {},
    };
    // On a busy machine, credentials may end before a try does.
    const tries = { retryMs: 50, maxRetryMs: 500 };
    const times = { settleMs: 300, waitMs: 3_000, quietMs: 50, cheapRest: 0, ...tries };
    const { bucket, client, writer, keys } = await open(t, { sweeps: false, times, metrics });
    // Upkeep begins with the last write, however long the others take.
    await writer.createTable({ id: ID }, personStream(people(1)));
    for (let from = 1; from < 3; from++)
      await writer.insertIntoTable({ id: ID }, personStream(people(1, from)));
    bucket.delayMs = REQUEST_MS / 2;
    await client.insertIntoTable({ id: ID }, personStream(people(1, 3)));
    const [asked, started] = [keys(), Date.now()];
    await expect.poll(() => runs).toContain(4);
    assert.ok(Date.now() - started > LIFE_MS);
    assert.ok(keys() > asked + 1);
    bucket.delayMs = 0;
    assert.equal((await client.countTableRows({ id: ID })).count, 4n);
  });

  test("end the call if the catalog denies new ones", async (t) => {
    const { bucket, catalog, client } = await open(t);
    await client.createTable({ id: ID }, personStream(people(50)));
    bucket.delayMs = REQUEST_MS;
    const query = client.queryTable({ id: ID });
    await sleep(REQUEST_MS / 2);
    catalog.isDenied = true;
    await refused(["ServiceUnavailable", "PermissionDenied"], query);
    catalog.isDenied = false;
    bucket.delayMs = 0;
    assert.equal((await client.countTableRows({ id: ID })).count, 50n);
  });
});
