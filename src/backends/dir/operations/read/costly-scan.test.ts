import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { QueryTableRequestSchema } from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { createDirectoryBackend } from "../../index.ts";

const ROWS = 24_000;

/** A condition with nearly all steps that a condition may have, which no text of `a` and `b` meets. It takes 0.2 s for 1,000 rows. */
const COSTLY = Array.from({ length: 6 }, (_, i) => `regexp_like(s, 'a[ab]{${75 + i}}[^ab]')`).join(" OR ");

const computedMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

test("a scan whose condition no row meets ends with its call, whatever columns it has", async (t) => {
  const backend = await createDirectoryBackend({ root: await temporaryDirectory(t), log: silent });
  const client = clientOf(backend);
  t.onTestFinished(client.close);
  const texts = Array.from({ length: ROWS }, () =>
    Array.from(randomBytes(100), (byte) => (byte % 2 === 0 ? "a" : "b")).join(""),
  );
  const rows = new Table({
    s: vectorFromArray(texts, new Utf8()),
    wide: vectorFromArray(
      texts.map((text) => text.repeat(10)),
      new Utf8(),
    ),
  });
  await client.upload("createTable", "t", {}, tableToIPC(rows, "stream"));
  const ending = new AbortController();
  const call = beginCall(LanceNamespaceService.method.queryTable, { id: ["t"], signal: ending.signal });
  const result = backend.operations.queryTable?.(create(QueryTableRequestSchema, { filter: COSTLY }), call);
  assert.ok(result);
  const before = computedMs();
  const reading = assert.rejects(async () => {
    for await (const _message of result);
  }, failsWith("Cancelled"));
  while (computedMs() - before < 600) await sleep(20);
  ending.abort();
  await reading;
  const ended = computedMs();
  await sleep(4_000);
  assert.ok(computedMs() - ended < 1_500, `the engine computed for ${computedMs() - ended} ms more`);
});
