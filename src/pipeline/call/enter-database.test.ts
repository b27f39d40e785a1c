import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { isLanceError } from "../../namespace/errors.ts";
import { databaseNamed } from "./enter-database.ts";

function named(headers: Record<string, string>, host?: string): string | undefined {
  return databaseNamed({ headers, address: { host, database: undefined } });
}

describe("databaseNamed", () => {
  it("reads a header, and the host of the region local where no header names a database", () => {
    assert.equal(
      named({ "x-service-database": "a", "x-lancedb-database": "b" }, "c.local.api.lancedb.com"),
      "a",
    );
    assert.equal(named({ "x-lancedb-database": "b" }, "c.local.api.lancedb.com"), "b");
    assert.equal(named({}, "c.local.api.lancedb.com"), "c");
    assert.equal(named({}, "Team.events.LOCAL.api.lancedb.com.:2333"), "Team.events");
    assert.equal(named({}, "local.api.lancedb.com"), undefined);
    assert.equal(named({}, "c.eu.api.lancedb.com"), undefined);
    assert.equal(named({}), undefined);
  });

  it("puts a prefix behind the name", () => {
    const prefix = { "x-lancedb-database-prefix": "events" };
    assert.equal(named({ "x-lancedb-database": "team", ...prefix }), "team/events");
    assert.equal(named(prefix, "team.local.api.lancedb.com"), "team/events");
    assert.throws(
      () => named(prefix),
      (error) => isLanceError(error, "InvalidInput"),
    );
  });
});
