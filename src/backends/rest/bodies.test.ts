import assert from "node:assert/strict";
import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { callOf, sendJson, type Upstream } from "../../../test/fixtures/upstreams/rest.ts";
import {
  failing,
  insertIntoTable,
  queryTable,
  upstreamOf,
} from "../../../test/fixtures/upstreams/upstream.ts";
import { steady } from "../../../test/support/steady.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";

const { mergeInsertIntoTable } = LanceNamespaceService.method;

type Download = (
  request: unknown,
  call: Call,
) => AsyncIterable<{ data?: { data: Uint8Array; contentType: string } }>;

function download(upstream: Upstream, overrides: Partial<Call> = {}) {
  const handler = upstream.backend.operations.queryTable as unknown as Download;
  return handler(create(queryTable.input), callOf(queryTable, overrides));
}

describe("bodies", () => {
  test("a download is asked for as the client takes it, and told as what it is", async () => {
    const upstream = await upstreamOf((response) => response.end("ARROW1 and more"));
    const types: (string | undefined)[] = [];
    for (const overrides of [{}, { protocol: "grpc" as const }]) {
      for await (const { data } of download(upstream, overrides)) types.push(data?.contentType);
    }
    assert.deepEqual(
      upstream.seen.map(({ headers }) => headers.accept),
      ["application/vnd.apache.arrow.file", "application/vnd.apache.arrow.stream"],
    );
    assert.deepEqual(types, ["application/vnd.apache.arrow.file", "application/vnd.apache.arrow.file"]);
  });

  test("a download that is cut off fails, whatever has come", async () => {
    const upstream = await upstreamOf((response) => {
      response.writeHead(200, { "content-length": 100 }).write("x".repeat(50), () => response.destroy());
    });
    await assert.rejects(async () => {
      for await (const _ of download(upstream));
    }, failing("ServiceUnavailable"));
  });

  test("a download that is refused has its error", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { code: 4, error: "t" }, 404));
    await assert.rejects(async () => {
      for await (const _ of download(upstream));
    }, failing("TableNotFound"));
  });

  test("a reader that does not read holds the upstream back, and one that leaves ends it", async () => {
    const closed = Promise.withResolvers<number>();
    let sent = 0;
    const upstream = await upstreamOf(async (response) => {
      response.on("close", () => closed.resolve(sent));
      response.writeHead(200, { "content-type": "application/vnd.apache.arrow.stream" });
      while (!response.destroyed && sent < 2 ** 28) {
        sent += 2 ** 20;
        if (!response.write(Buffer.alloc(2 ** 20)))
          await Promise.race([once(response, "drain"), closed.promise]);
      }
    });
    for await (const _ of download(upstream)) {
      await steady(() => sent);
      break;
    }
    assert.ok((await closed.promise) < 2 ** 26, `${sent} bytes were sent ahead`);
  });

  test("an upload passes as it comes, and what has gone is released", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { version: 2 }));
    let released = 0;
    async function* pieces() {
      for (const piece of ["one,", "two,", "three"]) yield Buffer.from(piece);
    }
    const call = callOf(insertIntoTable, { releaseBody: (bytes) => (released += bytes) });
    const request = create(insertIntoTable.input, { mode: 2, branch: "b" });
    const answer = await upstream.backend.operations.insertIntoTable?.(request, pieces(), call);
    assert.equal(answer?.version, 2n);
    const [{ body, url, headers } = { body: "", url: "", headers: {} }] = upstream.seen;
    assert.equal(body, "one,two,three");
    assert.equal(url, "/v1/table/n%24t/insert?delimiter=%24&branch=b&mode=overwrite");
    assert.equal(headers["content-type"], "application/vnd.apache.arrow.stream");
    assert.equal(released, body.length);
  });

  test("an upload that breaks off does not arrive as a whole one", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, {}));
    const broken = new LanceError("PayloadTooLarge", "too large");
    async function* pieces() {
      yield Buffer.from("one");
      throw broken;
    }
    const call = callOf(insertIntoTable);
    const inserted = upstream.backend.operations.insertIntoTable?.(
      create(insertIntoTable.input),
      pieces(),
      call,
    );
    await assert.rejects(inserted as Promise<unknown>, (error) => error === broken);
    assert.equal(upstream.seen.length, 0);
  });

  test("an upload with a content type that no header can have is refused, and the upstream stays in use", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, {}), {
      resilience: { circuitFailures: 1 },
    });
    async function* pieces() {
      yield Buffer.from("one");
    }
    for (const contentType of ["a/b\r\nx-lance-a: b", "\u{1f600}", "a".repeat(2_000)]) {
      const request = create(insertIntoTable.input, { data: { contentType } });
      const inserted = upstream.backend.operations.insertIntoTable?.(
        request,
        pieces(),
        callOf(insertIntoTable),
      );
      await assert.rejects(inserted as Promise<unknown>, failing("InvalidInput"));
    }
    await upstream.backend.operations.insertIntoTable?.(
      create(insertIntoTable.input),
      pieces(),
      callOf(insertIntoTable),
    );
    assert.equal(upstream.seen.length, 1);
  });

  test("an upload with parameters that no URL holds is refused, and not sent", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { version: 2 }));
    async function* pieces() {
      yield Buffer.from("one");
    }
    const merge = (init: object) =>
      (upstream.backend.operations as LanceNamespace).mergeInsertIntoTable(
        create(mergeInsertIntoTable.input, { on: ["a"], ...init }),
        pieces(),
        callOf(mergeInsertIntoTable),
      );
    const filter = "x".repeat(10_000);
    for (const init of [
      { whenMatchedUpdateAllFilt: filter.repeat(1_600) },
      { on: Array.from({ length: 100_000 }, (_, at) => `c${at}`) },
    ])
      await assert.rejects(merge(init), failing("InvalidInput", /URL/));
    await merge({ whenMatchedUpdateAllFilt: filter });
    assert.equal(upstream.seen.length, 1);
  });
});
