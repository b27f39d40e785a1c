import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it, test } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { observe } from "../../pipeline/records/observe.ts";
import { createLog, formatLines, lineText, toDescriptor } from "./log.ts";
import { redactText } from "./redact.ts";

const { describeTable } = LanceNamespaceService.method;

function logged(secrets: readonly string[] = []) {
  const lines: string[] = [];
  return { log: createLog("trace", secrets, { write: (line: string) => lines.push(line) }), lines };
}

describe("redactText", () => {
  it("takes away what looks like a credential, and leaves the rest", () => {
    for (const [text, expected] of [
      [
        "GET https://b.s3.example/k?X-Amz-Signature=marked&x=1 failed",
        "GET https://b.s3.example/k?*** failed",
      ],
      ["to redis://user:marked@host/0", "to redis://***@host/0"],
      ["header Authorization: Bearer marked.a-b_c, next", "header Authorization: ***, next"],
      ["sent Bearer marked there", "sent Bearer *** there"],
      ['{"api_key":"marked","a":1}', '{"api_key":***,"a":1}'],
      ["aws_secret_access_key=marked&region=x", "aws_secret_access_key=***&region=x"],
      ["client_secret='marked text' rest", "client_secret=*** rest"],
      [
        "table ns$t does not exist; a bearer token is needed",
        "table ns$t does not exist; a bearer token is needed",
      ],
      ["http://127.0.0.1:2333/v1/table", "http://127.0.0.1:2333/v1/table"],
    ] as const) {
      assert.equal(redactText(text), expected);
    }
  });

  it("reads a text of a caller's choice once, however often a secret's name begins in it", () => {
    for (const part of ["token-", "a-", "a://", "a.", "x?", 'token="', "Bearer ", "secret: "]) {
      const text = part.repeat(100_000);
      assert.ok(redactText(text).length > 0, part);
      assert.equal(redactText(`${text} password=marked`).includes("marked"), false, part);
    }
  });

  it("takes away the given secrets wherever they are, unless they are too short to tell", () => {
    assert.equal(redactText("x hunter22 y", ["hunter22", "y"]), "x *** y");
  });
});

describe("createLog", () => {
  it("keeps of an error what is known to be harmless, and of its causes", () => {
    const { log, lines } = logged();
    const inner = Object.assign(new Error("socket hang up"), {
      code: "ECONNRESET",
      rawPacket: Buffer.from("authorization: marked"),
      headers: { cookie: "marked" },
    });
    const error = Object.assign(new AggregateError([inner], "all failed", { cause: inner }), {
      config: "marked",
    });
    log.error({ err: error }, "it failed");
    const { err } = JSON.parse(lines[0] as string);
    assert.equal(err.cause.code, "ECONNRESET");
    assert.equal(err.errors[0].message, "socket hang up");
    assert.match(err.stack, /all failed\n +at /);
    assert.doesNotMatch(lines[0] as string, /marked|109,97,114,107/);
  });

  it("takes the values of a call's headers out of the call's line, errors included", async () => {
    const { log, lines } = logged();
    const headers = { authorization: "Bearer marked-1", "x-mine": "marked-22", "user-agent": "no secret" };
    const call = beginCall(describeTable, {
      log,
      headers,
      identity: { apiKey: "marked-3", authToken: "marked-1" },
    });
    const cause = new Error("upstream says: marked-1 and marked-22");
    const failures = [
      new LanceError("InvalidInput", "marked-3 is no key"),
      new LanceError("Internal", "x", { cause }),
    ];
    const request = {
      kind: "unary",
      operation: "describeTable",
      message: create(describeTable.input),
    } as const;
    for (const failure of failures) {
      await assert.rejects(observe()(call, request, () => Promise.reject(failure)));
    }
    assert.equal(lines.length, 2);
    for (const line of lines) {
      assert.doesNotMatch(line, /marked/);
      assert.match(line, /DescribeTable/);
    }
  });

  it("knows the secrets of the configuration", () => {
    const { log, lines } = logged(["marked-secret"]);
    log.warn({ nested: { list: ["a marked-secret"] }, text: "marked-secret", n: 1 }, "text");
    assert.deepEqual(JSON.parse(lines[0] as string).nested, { list: ["a ***"] });
    assert.doesNotMatch(lines[0] as string, /marked/);
  });

  it("keeps no more than a bound of the lines that a full disk does not take", (t) => {
    const fd = openSync("/dev/full", "w");
    t.onTestFinished(() => closeSync(fd));
    const to = toDescriptor(fd);
    let lost = 0;
    to.on("drop", () => lost++);
    const log = createLog("info", [], to);
    const lines = 40;
    for (let line = 0; line < lines; line++) log.info({ text: "x".repeat(100_000) }, "it failed");
    assert.ok(lost > lines / 2, `${lost} lines were lost`);
  });
});

function textOf(write: (log: ReturnType<typeof createLog>) => void): string {
  let text = "";
  const to = {
    write(line: string) {
      text += line;
    },
  };
  write(createLog("debug", ["secret-word"], formatLines("text", -1, to)));
  return text;
}

describe("the log for people", () => {
  test("has the time, the level, the message and the fields in a line", () => {
    const text = textOf((log) =>
      log.info({ port: 2333, address: "127.0.0.1", of: "two words" }, "listening"),
    );
    expect(text).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} INFO {2}listening port=2333 address=127\.0\.0\.1 of="two words"\n$/,
    );
  });

  test("shows errors below their line, without secrets", () => {
    const text = textOf((log) => log.error({ err: new Error("no secret-word here") }, "it failed"));
    expect(text).toMatch(/ ERROR it failed\n {4}\S/);
    expect(text).not.toContain("secret-word");
  });

  test("passes no commands to the terminal, and marks troubles with colors", () => {
    const line = JSON.stringify({ level: 40, time: 0, msg: "a\u001b[2Jb", what: "\u009b1m\n" });
    expect(lineText(line, (_, text) => text)).toMatch(/WARN {2}a\\u001b\[2Jb what=/);
    expect(lineText(line, (_, text) => text).slice(0, -1)).not.toMatch(/\p{Cc}/u);
    expect(lineText(line, (color, text) => `<${color}>${text}`)).toContain("<yellow>WARN ");
  });

  test("is for terminals, and others get JSON unless asked", () => {
    const to = { write: () => {} };
    expect(formatLines("auto", -1, to)).toBe(to);
    expect(formatLines("json", -1, to)).toBe(to);
    expect(formatLines("text", -1, to)).not.toBe(to);
  });
});
