import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { callOf, sendJson, type Upstream } from "../../../test/fixtures/upstreams/rest.ts";
import { backendDownload, failing, upstreamOf } from "../../../test/fixtures/upstreams/upstream.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { createAnswerBudget } from "../resilience/answer-budget.ts";

const { listTables, dropTable } = LanceNamespaceService.method;

const MIB = 1024 ** 2;
const LARGE = JSON.stringify({ tables: Array.from({ length: MIB / 128 }, () => "t".repeat(128)) });

/** Sends the beginning of an answer, and remembers how to end it. */
function begin(response: ServerResponse, framing: "length" | "chunks" = "length"): () => void {
  const length = framing === "length" ? { "content-length": LARGE.length } : {};
  response.writeHead(200, { "content-type": "application/json", ...length });
  response.write(LARGE.slice(0, MIB / 2));
  return () => response.end(LARGE.slice(MIB / 2));
}

const list = ({ backend }: Upstream, overrides: Partial<Call> = {}) => {
  const answer = backend.operations.listTables?.(create(listTables.input), callOf(listTables, overrides));
  return answer ?? Promise.reject(new Error("it lists no tables"));
};

const isCrowded = (error: unknown) =>
  isLanceError(error, "ServiceUnavailable") && /in flight/.test(error.message);

describe("answers that are collected", () => {
  for (const framing of ["length", "chunks"] as const) {
    test(`fail beyond the memory of all of them, and give it back however they end (${framing})`, async () => {
      const answers = createAnswerBudget(MIB);
      const ends: (() => void)[] = [];
      const answer = (response: ServerResponse) => void ends.push(begin(response, framing));
      const upstream = await upstreamOf(answer, { answers });
      const cancel = new AbortController();
      const first = list(upstream, { signal: cancel.signal });
      await expect.poll(() => answers.held).toBeGreaterThan(MIB / 4);
      const second = list(upstream);
      await expect.poll(() => answers.held).toBeGreaterThan((MIB * 3) / 4);
      await assert.rejects(list(upstream), isCrowded);
      cancel.abort(new LanceError("Cancelled", "the client left"));
      await assert.rejects(first, failing("Cancelled"));
      await expect.poll(() => answers.held).toBeLessThan((MIB * 3) / 4);
      ends[1]?.();
      assert.equal((await second).tables.length, MIB / 128);
      assert.equal(answers.held, 0);
    });
  }

  test("arrive while the memory is used up, if they are small", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { tables: ["t"] }), {
      answers: createAnswerBudget(0),
    });
    assert.deepEqual((await list(upstream)).tables, ["t"]);
  });

  test("count as errors, too, and give their memory back", async () => {
    const answers = createAnswerBudget(MIB * 2);
    const upstream = await upstreamOf((response) => response.writeHead(404).end(LARGE), { answers });
    await assert.rejects(list(upstream), failing("NamespaceNotFound"));
    const download = backendDownload(upstream);
    await assert.rejects(async () => {
      for await (const _ of download);
    }, failing("TableNotFound"));
    assert.equal(answers.held, 0);
  });

  test("leave the outcome of a change unknown if they find no memory", async () => {
    const answers = createAnswerBudget(MIB / 4);
    const upstream = await upstreamOf((response) => void begin(response), { answers });
    const drop = upstream.backend.operations.dropTable?.(create(dropTable.input), callOf(dropTable));
    await assert.rejects(drop ?? Promise.resolve(), failing("OutcomeUnknown"));
    assert.equal(answers.held, 0);
  });
});
