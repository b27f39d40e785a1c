import assert from "node:assert/strict";
import type { MessageShape } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import {
  type Answer,
  callOf,
  callUnary,
  sendJson,
  startUpstream,
} from "../../../test/fixtures/upstreams/rest.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";

const { describeTable } = LanceNamespaceService.method;

describe("a REST upstream with entity tags", () => {
  async function open(answer: Answer) {
    const upstream = await startUpstream(answer, { cache: { ttlMs: 60_000 } });
    return {
      upstream,
      async describe(headers = {}) {
        const call = callOf(describeTable, { headers });
        const answer = await callUnary(upstream, describeTable, {}, call);
        const { location } = answer as MessageShape<typeof describeTable.output>;
        return { location, decisions: call.decisions, headers: call.responseHeaders };
      },
    };
  }

  for (const status of [304, 412]) {
    it(`takes ${status} for the word that the kept answer holds`, async (t) => {
      let tag = '"one"';
      const { upstream, describe: ask } = await open((response, { headers }) => {
        response
          .setHeader("etag", tag)
          .setHeader("cache-control", "no-cache")
          .setHeader("server-timing", "x");
        if (headers["if-none-match"] === tag) response.writeHead(status).end();
        else sendJson(response, { location: tag });
      });
      t.onTestFinished(() => upstream.close());
      const first = await ask();
      assert.deepEqual([first.location, first.decisions], ['"one"', ["cache_miss"]]);
      const second = await ask();
      assert.deepEqual([second.location, second.decisions], ['"one"', ["cache_revalidated"]]);
      assert.equal(second.headers["etag"], '"one"');
      tag = '"two"';
      assert.equal((await ask()).location, '"two"');
      assert.deepEqual(
        upstream.seen.map(({ headers }) => headers["if-none-match"]),
        [undefined, '"one"', '"one"'],
      );
    });
  }

  it("does not mistake an answer to a client's own condition", async (t) => {
    const { upstream, describe: ask } = await open((response) => {
      response.setHeader("etag", '"one"').setHeader("cache-control", "no-cache");
      sendJson(response, { location: "here" });
    });
    t.onTestFinished(() => upstream.close());
    await ask();
    await ask({ "if-none-match": '"other"' });
    assert.equal(upstream.seen[1]?.headers["if-none-match"], undefined);
  });

  it("keeps nothing that the upstream says must not be kept", async (t) => {
    const { upstream, describe: ask } = await open((response) => {
      response.setHeader("etag", '"one"').setHeader("cache-control", "no-store");
      sendJson(response, { location: "here" });
    });
    t.onTestFinished(() => upstream.close());
    await ask();
    await ask();
    assert.deepEqual(
      upstream.seen.map(({ headers }) => headers["if-none-match"]),
      [undefined, undefined],
    );
  });
});
