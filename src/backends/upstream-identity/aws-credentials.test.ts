import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { pino } from "pino";
import { describe, test, vi } from "vitest";
import { callUnary, type Seen, sendJson } from "../../../test/fixtures/upstreams/rest.ts";
import {
  numbered,
  SECRETS,
  signed,
  signing,
  type Take,
  TOKEN,
} from "../../../test/fixtures/upstreams/sigv4-upstream.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";

const { describeTable, dropTable } = LanceNamespaceService.method;

const failing = (name: ErrorName) => (error: unknown) => {
  assert.ok(error instanceof LanceError, String(error));
  assert.equal(error.entry.name, name, error.message);
  return true;
};

const refuse = (response: ServerResponse, type: string) => {
  response.setHeader("x-amzn-errortype", `${type}:http://internal.amazon.com/`);
  sendJson(response, { message: "no" }, 403);
};

describe("AWS credentials", () => {
  test("are found once for many calls, and again before they end", async ({ onTestFinished }) => {
    onTestFinished(() => void vi.restoreAllMocks());
    const { provider, count } = numbered(3_600_000);
    const upstream = await signing({ provider });
    const start = Date.now();
    await Promise.all(Array.from({ length: 10 }, () => callUnary(upstream, describeTable)));
    assert.equal(count(), 1);
    vi.spyOn(Date, "now").mockImplementation(() => start + 3_400_000);
    await callUnary(upstream, describeTable);
    assert.equal(count(), 2);
    await callUnary(upstream, describeTable);
    assert.deepEqual(
      new Set(upstream.seen.map((request) => signed(request).accessKeyId)),
      new Set(["KEY-1", "KEY-2"]),
    );
    assert.equal(signed(upstream.seen.at(-1) as Seen).accessKeyId, "KEY-2");
  });

  test("that the upstream takes for expired are found again, and the call sent once more", async ({
    onTestFinished,
  }) => {
    onTestFinished(() => void vi.restoreAllMocks());
    const upstream = await signing({}, (response, request) =>
      expired && signed(request).accessKeyId === "KEY-1"
        ? refuse(response, "ExpiredTokenException")
        : sendJson(response, {}),
    );
    let expired = false;
    await callUnary(upstream, describeTable);
    expired = true;
    const later = Date.now() + 2_000;
    vi.spyOn(Date, "now").mockImplementation(() => later);
    await callUnary(upstream, dropTable);
    const keys = upstream.seen.map((request) => signed(request).accessKeyId);
    assert.deepEqual(keys, ["KEY-1", "KEY-1", "KEY-2"]);
  });

  test("that the upstream refuses for good are the gateway's fault, and missing rights stay a refusal", async () => {
    for (const [type, name] of [
      ["InvalidSignatureException", "ServiceUnavailable"],
      ["UnrecognizedClientException", "ServiceUnavailable"],
      ["AccessDeniedException", "PermissionDenied"],
    ] as const) {
      const upstream = await signing({}, (response) => refuse(response, type));
      await assert.rejects(callUnary(upstream, describeTable), failing(name));
    }
  });

  test("that cannot be found fail the call without a request", async () => {
    const upstream = await signing({ provider: () => Promise.reject(new Error("no metadata")) });
    await assert.rejects(callUnary(upstream, describeTable), (error: LanceError) => {
      assert.match(error.message, /no AWS credentials/);
      return failing("ServiceUnavailable")(error);
    });
    assert.deepEqual(upstream.seen, []);
  });

  test("come from the default chain", async ({ onTestFinished }) => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", "KEY-1");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", SECRETS[0]);
    vi.stubEnv("AWS_SESSION_TOKEN", TOKEN);
    onTestFinished(() => void vi.unstubAllEnvs());
    const upstream = await signing({ provider: undefined });
    await callUnary(upstream, describeTable);
    assert.deepEqual(
      upstream.seen.map((request) => signed(request).accessKeyId),
      ["KEY-1"],
    );
  });

  test("are in no line of the log", async () => {
    const lines: string[] = [];
    const log = pino({ level: "trace" }, { write: (line: string) => lines.push(line) });
    const takes: Take[] = [
      (response) => response.destroy(),
      (response) => refuse(response, "InvalidSignatureException"),
    ];
    for (const take of takes) {
      const upstream = await signing({}, take, { log });
      await callUnary(upstream, describeTable, {}, { log }).then(
        () => assert.fail("the call is refused"),
        (err: unknown) => log.error({ err }, "call failed"),
      );
    }
    assert.ok(lines.length >= takes.length);
    for (const text of [...SECRETS, TOKEN, "Signature="]) assert.ok(!lines.join().includes(text), text);
  });
});
