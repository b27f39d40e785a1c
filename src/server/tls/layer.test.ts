import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { describe, it } from "vitest";
import { type AlternativeName, makeAuthority } from "../../../test/support/certificates.ts";
import { nameIn } from "./layer.ts";

const { sign } = await makeAuthority();

/** Returns the name in a real certificate. */
async function nameWith(...names: readonly [AlternativeName["kind"], string][]) {
  const { cert } = await sign({ commonName: "root", names: names.map(([kind, value]) => ({ kind, value })) });
  return nameIn(new X509Certificate(cert).subjectAltName ?? "");
}

describe("the name of a client", () => {
  it("is the URI, or else the first DNS name, or else the first e-mail address", async () => {
    const spiffe = "spiffe://example.org/ns/etl/sa/loader";
    const mail = ["email", "ann@example.org"] as const;
    const host = ["DNS", "Loader.example.org"] as const;
    assert.deepEqual(await nameWith([...mail], [...host], ["URI", spiffe]), { name: spiffe });
    assert.deepEqual(await nameWith([...mail], [...host], ["DNS", "other"]), { name: "loader.example.org" });
    assert.deepEqual(await nameWith(["IP", "192.0.2.1"], [...mail]), { name: "ann@example.org" });
  });

  it("is neither an address nor the common name", async () => {
    assert.deepEqual(await nameWith(["IP", "192.0.2.1"]), {});
    assert.deepEqual(await nameWith(), {});
  });

  it("is none of several URIs", async () => {
    const two = await nameWith(["URI", "spiffe://example.org/a"], ["URI", "spiffe://example.org/b"]);
    assert.deepEqual(two, { fault: "it has several URIs" });
  });

  for (const [kind, value] of [
    ["DNS", "evil, URI:spiffe://example.org/admin"],
    ["DNS", 'evil", URI:"spiffe://example.org/admin'],
    ["DNS", "spiffe://example.org/admin"],
    ["email", "x@y, URI:spiffe://example.org/admin"],
    ["URI", "https://example.org/ b"],
    ["URI", "spiffe://example.org/\u0000admin"],
  ] as const) {
    it(`is not taken from a ${kind} that is ${JSON.stringify(value)}`, async () => {
      const { name, fault } = await nameWith([kind, value]);
      assert.equal(name, undefined);
      assert.match(fault ?? "", /cannot be read/);
    });
  }
});
