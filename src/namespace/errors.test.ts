import assert from "node:assert/strict";
import { describe, it } from "vitest";
import {
  ERROR_TABLE,
  type ErrorName,
  errorEntry,
  errorEntryNamed,
  errorEntryOfCode,
  LanceError,
  PUBLIC_ERROR_COUNT,
  problemOf,
  statusOfType,
  toLanceError,
} from "./errors.ts";

describe("the error table", () => {
  it("has the 24 public codes first, in order", () => {
    const codes = ERROR_TABLE.slice(0, PUBLIC_ERROR_COUNT).map((entry) => entry.code);
    assert.deepEqual(
      codes,
      Array.from({ length: 24 }, (_, code) => code),
    );
  });

  it("gives every row a name of its own, and each status one type for all rows that the specification lists", () => {
    assert.equal(new Set(ERROR_TABLE.map((entry) => entry.name)).size, ERROR_TABLE.length);
    const statuses = Map.groupBy(ERROR_TABLE, ({ httpStatus }) => httpStatus);
    for (const [status, rows] of statuses)
      assert.equal(new Set(rows.map(({ type }) => type)).size, 1, String(status));
  });

  it("spells type and title as the specification does, and those of other statuses from the name", () => {
    const shown = (name: ErrorName, status?: number) => {
      const { httpStatus } = errorEntry(name);
      return Object.values(problemOf(name, status ?? httpStatus));
    };
    assert.deepEqual(shown("TableNotFound"), ["/errors/not-found-error", "Not found Error"]);
    assert.deepEqual(shown("TableAlreadyExists", 400), ["/errors/bad-request", "Malformed request"]);
    assert.deepEqual(shown("PayloadTooLarge"), ["/errors/payload-too-large", "Payload too large"]);
    assert.deepEqual(shown("DeadlineExceeded", 408), ["/errors/deadline-exceeded", "Deadline exceeded"]);
  });

  it("finds a row by its name, and by its words in a type or a title", () => {
    for (const text of ["DataLoss", "/errors/data-loss", "Data loss"])
      assert.equal(errorEntryNamed(undefined, "other", text)?.name, "DataLoss");
    assert.equal(errorEntryNamed("/errors/not-found-error", "Not found Error"), undefined);
    assert.equal(statusOfType("/errors/not-found-error"), 404);
    assert.equal(statusOfType("/errors/data-loss"), undefined);
  });

  it("takes an unknown code for Internal", () => {
    assert.equal(errorEntryOfCode(4).name, "TableNotFound");
    assert.equal(errorEntryOfCode(99).name, "Internal");
  });

  it("shows an unknown failure as an opaque Internal that keeps its cause", () => {
    const cause = new Error("secret path");
    const error = toLanceError(cause);
    assert.equal(error.entry.name, "Internal");
    assert.equal(error.cause, cause);
    assert.doesNotMatch(error.message, /secret/);
  });

  it("has whole characters only, also where a long text is cut, because gRPC-Web breaks off an answer with half of one", () => {
    const [half, long] = ["\ud83d", `${"x".repeat(1998)}\u{1f600}${"x".repeat(10)}`];
    for (const text of [half, long]) {
      const { message, detail, instance } = new LanceError("Internal", text, {
        detail: text,
        instance: text,
      });
      assert.deepEqual(
        [message, detail, instance].map((each) => each?.isWellFormed()),
        [true, true, true],
      );
    }
  });

  it("counts errors of another copy of the class as its own, and as none of a class that extends it", () => {
    class Narrow extends LanceError {}
    const error = new LanceError("TableNotFound", "it is gone");
    const copy = Object.assign(new Error("it is gone"), { [Symbol.for("lance-gateway.LanceError")]: true });
    assert.ok(copy instanceof LanceError);
    assert.ok(new Narrow("TableNotFound", "it is gone") instanceof Narrow);
    assert.ok(new Narrow("TableNotFound", "it is gone") instanceof LanceError);
    assert.ok(!(error instanceof Narrow));
    assert.ok(!(new Error("it is gone") instanceof LanceError));
  });
});
