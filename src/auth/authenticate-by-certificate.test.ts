import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { ClientCertificate } from "../namespace/call/call.ts";
import type { Principal } from "../namespace/call/principal.ts";
import { isLanceError } from "../namespace/errors.ts";
import { compileRoles, proveByCertificates } from "./authenticate-by-certificate.ts";

const way = proveByCertificates([{ role: "writer", pattern: "spiffe://example.org/ns/etl/*" }]);
const VALID = {
  name: "spiffe://example.org/ns/etl/loader",
  fingerprint: "ab12",
  expires: Date.now() + 60_000,
};

function prove(certificate: ClientCertificate | undefined): Principal | undefined {
  return way.prove({ identity: { apiKey: undefined, authToken: undefined }, certificate }) as
    | Principal
    | undefined;
}

describe("a caller with a certificate", () => {
  it("has the certificate's name, its fingerprint as id, and the role of the name", () => {
    assert.deepEqual(prove(VALID), {
      ...{ by: "mtls", name: VALID.name, credentialId: "ab12", role: "writer", groups: [], claims: {} },
    });
    assert.equal(prove({ ...VALID, name: "spiffe://example.org/ns/other/loader" })?.role, "none");
  });

  it("is the same object for all calls of a connection, until the certificate expires", () => {
    const certificate = { ...VALID };
    assert.equal(prove(certificate), prove(certificate));
    certificate.expires = Date.now() - 1;
    assert.throws(
      () => prove(certificate),
      (error) => isLanceError(error, "Unauthenticated"),
    );
  });

  it("is nobody without a certificate", () => {
    assert.equal(prove(undefined), undefined);
  });

  for (const [what, certificate] of [
    ["that is not trusted", { ...VALID, fault: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }],
    ["that expires while the connection is open", { ...VALID, expires: Date.now() - 1 }],
    ["without a name", { ...VALID, name: undefined }],
  ] as const) {
    it(`is refused with one ${what}`, () => {
      assert.throws(
        () => prove(certificate),
        (error) => isLanceError(error, "Unauthenticated"),
      );
    });
  }
});

describe("roles of certificates", () => {
  it("are the mightiest of those whose form the whole name has, and none without one", () => {
    const roleOf = compileRoles([
      { role: "reader", pattern: "*.example.org" },
      { role: "owner", pattern: "admin.example.org" },
      { role: "writer", pattern: "spiffe://example.org/ns/*/sa/etl" },
      { role: "reader", pattern: "a+(b)@example.org" },
    ]);
    for (const [name, role] of [
      ["a.example.org", "reader"],
      ["a.b.example.org", "reader"],
      ["admin.example.org", "owner"],
      ["a.exampleXorg", "none"],
      ["a.example.org.evil.net", "none"],
      ["spiffe://x/a.example.org", "none"],
      ["spiffe://example.org/ns/one/sa/etl", "writer"],
      ["spiffe://example.org/ns/one/two/sa/etl", "none"],
      ["spiffe://example.org/ns/one/sa/etl/more", "none"],
      ["xspiffe://example.org/ns/one/sa/etl", "none"],
      ["a+(b)@example.org", "reader"],
      ["aab@example.org", "none"],
    ] as const)
      assert.equal(roleOf(name), role, name);
  });
});
