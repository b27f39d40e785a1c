import { expect, test } from "vitest";
import { accessLine } from "./access-entry.ts";
import { createMaskPath } from "./refusals.ts";

const mask = createMaskPath(new Set(["v1", "table"]));
const entry = { finished: true, received: 0, sent: 0, seconds: 0.0015 };

test("a client cannot write lines or hide text by what it sends", () => {
  const userAgent = 'agent\r\n{"level":30,"msg":"forged"}\u2028\u202e\u0000';
  const line = accessLine({ ...entry, method: "GET", path: "/v1/table\n/x", userAgent }, mask);
  expect(line).toMatch(/^[\x20-\x7e]*$/);
  expect(JSON.parse(line)).toMatchObject({ msg: "request", userAgent, path: "/v1/*/*", ms: 1.5 });
});

test("each text of a client is escaped where it needs it, and reads as it was sent", () => {
  const texts = [
    '"',
    "\\",
    'a"b\\c',
    "é ü 表 😀",
    "\ud800",
    "\u007f\u0085\u200b\ufeff",
    "\t\n\r\u001f",
    "",
    " plain ~!#[]",
  ];
  for (const text of texts) {
    const refusal = { protocol: "http", code: "InvalidInput", requestId: text, fault: text } as const;
    const line = accessLine({ ...entry, client: text, userAgent: text, refusal }, mask);
    expect(line.replaceAll(/[éü表😀]/gu, "")).toMatch(/^[\x20-\x7e]*$/);
    expect(JSON.parse(line)).toMatchObject({ requestId: text, fault: text, client: text, userAgent: text });
  }
});

test("long texts are cut, and paths that no call has are masked", () => {
  const line = accessLine(
    { ...entry, path: `/v1/table/${"s".repeat(900)}`, userAgent: "a".repeat(900) },
    mask,
  );
  expect(JSON.parse(line)).toMatchObject({ path: "/v1/table/*", userAgent: `${"a".repeat(299)}…` });
});

test("the trace of a request that never becomes a call comes from its header", () => {
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  expect(JSON.parse(accessLine({ ...entry, headers: { traceparent } }, mask)).traceId).toBe("a".repeat(32));
});
