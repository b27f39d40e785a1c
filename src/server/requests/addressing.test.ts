import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { addressOf } from "../../wires/arrival.ts";
import { createTakeAddress } from "./addressing.ts";

const plain = createTakeAddress({});

describe("createTakeAddress", () => {
  it("keeps a host of LanceDB's region local, and no other host that names no database", () => {
    const local = { host: "sales.local.api.lancedb.com" };
    assert.equal(plain("/v1/table", local), "/v1/table");
    assert.deepEqual(addressOf(local), { host: local.host, database: undefined });
    for (const host of ["localhost:2333", "local.api.lancedb.com", undefined]) {
      const headers = { host };
      plain("/v1/table", headers);
      assert.equal(addressOf(headers), undefined);
    }
  });

  it("takes the database from a path, whatever the host is", () => {
    const headers = { host: "localhost" };
    const take = createTakeAddress({ pathPrefix: "/db" });
    assert.equal(take("/db/team%2Fevents/v1/table", headers), "/v1/table");
    assert.deepEqual(addressOf(headers), { host: undefined, database: "team/events" });
  });

  it("prefers the authority of HTTP/2", () => {
    const headers = { ":authority": "a.example.com", host: "b.example.com" };
    createTakeAddress({ hosts: ["*.example.com"] })("/v1/table", headers);
    assert.equal(addressOf(headers)?.host, "a.example.com");
  });
});
