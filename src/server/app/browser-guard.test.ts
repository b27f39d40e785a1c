import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createHostCheck } from "./browser-guard.ts";

const EVIL = [
  "evil.example",
  "evil.example:2333",
  "localhost.evil.example",
  "127.0.0.1.nip.io",
  "evillocalhost",
  "local.api.lancedb.com",
  "a.local.api.lancedb.com.evil.example",
];
const LOCAL = [
  "localhost",
  "LOCALHOST:2333",
  "localhost.",
  "app.localhost:80",
  "127.0.0.1:2333",
  "[::1]:2333",
  "sales.local.api.lancedb.com",
  "team.events.local.api.lancedb.com:2333",
];

function listening(host: string, address: string, ...allowed: readonly string[]) {
  const check = createHostCheck(allowed, ["*.databases.example"]);
  check.listensOn(host, address);
  return (hosts: readonly string[]) => hosts.filter((name) => check.serves(name));
}

describe("createHostCheck", () => {
  it("serves on a loopback address only what no other page can have as its own host", () => {
    for (const address of ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"]) {
      const served = listening("my-loopback", address);
      assert.deepEqual(served(EVIL), []);
      assert.deepEqual(served(LOCAL), LOCAL);
      const others = ["my-loopback:1", "10.0.0.1", "[fe80::1]", "a.databases.example", ""];
      assert.deepEqual(served(others), others);
    }
  });

  it("serves any host elsewhere, and only those that are given where some are", () => {
    assert.deepEqual(listening("0.0.0.0", "0.0.0.0")(EVIL), EVIL);
    const served = listening("0.0.0.0", "0.0.0.0", "Lance.example.com", "*.mesh");
    assert.deepEqual(served([...EVIL, "example.com", "x.lance.example.com", "mesh"]), []);
    const good = ["lance.example.com:2333", "LANCE.EXAMPLE.COM.", "a.b.mesh", "10.0.0.7:2333", "localhost"];
    assert.deepEqual(served(good), good);
  });

  it("serves any host when asked to", () => {
    assert.deepEqual(listening("127.0.0.1", "127.0.0.1", "*")(EVIL), EVIL);
  });

  it("checks until it is known where the server listens", () => {
    assert.equal(createHostCheck([]).serves("evil.example"), false);
  });
});
