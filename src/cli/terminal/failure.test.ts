import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "vitest";
import { UsageError } from "../../config/option-spec.ts";
import { LanceError, toLanceError } from "../../namespace/errors.ts";
import { CallFailure, failureJson, failureLine } from "./failure.ts";

const unreached = (cause: unknown) =>
  new LanceError("ServiceUnavailable", "the upstream catalog cannot be reached", {
    cause,
    fault: "unreached",
  });
const coded = (code: string) => Object.assign(new Error("connect"), { code });

test("a failure of the connection names the address and the cause, wherever a library keeps it", () => {
  const causes: readonly (readonly [cause: unknown, code: string])[] = [
    [coded("ECONNREFUSED"), "ECONNREFUSED"],
    [new Error("outer", { cause: coded("ENOTFOUND") }), "ENOTFOUND"],
    [new AggregateError([new Error("connect ECONNREFUSED ::1:1")], "several"), "ECONNREFUSED"],
    [new Error("14 UNAVAILABLE: Name resolution failed for target dns:nohost:1"), "ENOTFOUND"],
    [
      new Error("Last error: Error: self-signed certificate. Resolution note:"),
      "DEPTH_ZERO_SELF_SIGNED_CERT",
    ],
    [new Error("self-signed certificate in certificate chain"), "SELF_SIGNED_CERT_IN_CHAIN"],
    [coded("UND_ERR_CONNECT_TIMEOUT"), "UND_ERR_CONNECT_TIMEOUT"],
  ];
  for (const [cause, code] of causes) {
    const { message } = new CallFailure(unreached(cause), "http://there");
    assert.match(
      message,
      new RegExp(`^http://there cannot be reached: .+ \\(${code}\\) \\(ServiceUnavailable\\)$`),
    );
  }
  const { message } = new CallFailure(unreached(new Error("strange")), "http://there");
  assert.equal(message, "http://there cannot be reached (ServiceUnavailable)");
});

test("an error of a directory names the cause that a server would only log", () => {
  const error = toLanceError(
    new Error("1.manifest ends too early, /x/lance-1.0/src/y.rs:7:26\nCaused by: more"),
  );
  assert.match(new CallFailure(error, "./data").message, /^internal error; the server's log has it/);
  assert.equal(
    new CallFailure(error, "./data", false).message,
    "internal error; 1.manifest ends too early (Internal)",
  );
});

test("an error of the server stays as the server wrote it", () => {
  const { message } = new CallFailure(new LanceError("TableNotFound", "no table\n t"), "http://there");
  assert.equal(message, "no table t (TableNotFound)");
});

test("a failure in JSON has its kind, and no secrets", () => {
  const failure = new CallFailure(unreached(coded("ECONNREFUSED")), "http://there");
  const { kind, address, cause } = JSON.parse(failureJson(failure)).error;
  assert.deepEqual([kind, address, cause], ["ServiceUnavailable", "http://there", "ECONNREFUSED"]);
  const secret = new UsageError("wrong: Bearer abcdefgh");
  assert.equal(failureJson(secret), '{"error":{"kind":"Usage","message":"wrong: Bearer ***"}}');
  assert.equal(JSON.parse(failureJson("text")).error.kind, "Failure");
});

test("a failure with a hostile name does not command the terminal", () => {
  const error = new LanceError("TableNotFound", "Table 't\u001b]0;owned\u0007\u009b2J\u202e' was not found");
  const failure = new CallFailure(error, "http://there");
  for (const text of [failureLine(failure), failureJson(failure)])
    for (const hidden of "\u0007\u001b\u009b\u202e") assert.ok(!text.includes(hidden), JSON.stringify(text));
  assert.equal(JSON.parse(failureJson(failure)).error.message, error.message);
});

test("a failure of a file begins with the file", async () => {
  const error = await readFile("/no/file").catch((thrown: unknown) => thrown);
  assert.equal(failureLine(error), "/no/file cannot be used: no such file or directory (ENOENT)");
});
