import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { isLanceError } from "../errors.ts";
import { demandedTime } from "./headers.ts";

const NOW = Date.parse("2026-01-02T03:04:05.678Z");
const time = (value: string) => demandedTime({ "x-lancedb-min-timestamp": value }, NOW);

describe("the demanded time", () => {
  it("is undefined without a header of its own", () => {
    assert.equal(demandedTime({ "x-lancedb-database": "d" }, NOW), undefined);
  });

  it("is the header's, rounded up to a millisecond", () => {
    assert.equal(time("2026-01-02T03:04:05.1+00:00"), NOW - 578);
    assert.equal(time("2026-01-02T03:04:05.123456789+00:00"), NOW - 554);
    assert.equal(time("2026-01-02T05:04:05+02:00"), NOW - 678);
    assert.equal(time("1969-12-31T23:59:59Z"), -1000);
  });

  it("is the present for a time in the future and for a version", () => {
    assert.equal(time("2026-01-02T03:04:06Z"), NOW);
    for (const name of ["x-lancedb-min-version", "x-lancedb-min-read-version"]) {
      assert.equal(demandedTime({ [name]: "1" }, NOW), NOW);
      const both = { [name]: "18446744073709551615", "x-lancedb-min-timestamp": "1970-01-01T00:00:00Z" };
      assert.equal(demandedTime(both, NOW), NOW);
    }
  });

  it("cannot be read from a malformed header, which is named", () => {
    for (const [name, value] of [
      ["x-lancedb-min-version", "-1"],
      ["x-lancedb-min-read-version", "1, 2"],
      ["x-lancedb-min-timestamp", "yesterday"],
      ["x-lancedb-min-timestamp", "2026"],
      ["x-lancedb-min-timestamp", "2026-13-02T03:04:05Z"],
    ] as const) {
      const isNamed = (error: unknown) => isLanceError(error, "InvalidInput") && error.message.includes(name);
      assert.throws(() => demandedTime({ [name]: value }, NOW), isNamed, value);
    }
  });
});
