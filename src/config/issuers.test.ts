import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { parseIssuer, parseServerAddress } from "./issuers.ts";
import { UsageError } from "./option-spec.ts";

describe("the setting of an issuer", () => {
  it("is an address, or a map with settings of its own", () => {
    assert.deepEqual(parseIssuer("https://login.example.com/"), { issuer: "https://login.example.com/" });
    const map = {
      ...{
        issuer: "https://login.example.com",
        audience: "lance",
        algorithms: ["RS256"],
        "clock-skew": "5s",
      },
      ...{ "required-claims": { internal: true }, "groups-claim": "roles", grant: ["reader=anyone"] },
      ...{ "console-client-id": "console", "console-scope": "openid  lance" },
    };
    assert.deepEqual(JSON.parse(JSON.stringify(parseIssuer(JSON.stringify(map)))), {
      ...{
        issuer: "https://login.example.com",
        audiences: ["lance"],
        algorithms: ["RS256"],
        clockSkewMs: 5_000,
      },
      ...{ requiredClaims: [["internal", "true"]], groupsClaim: "roles" },
      grants: [{ role: "reader", to: { kind: "anyone" } }],
      ...{ consoleClientId: "console", consoleScope: "openid lance" },
    });
  });

  for (const [what, map, message] of [
    ["no issuer", {}, /issuer is missing/],
    ["an unknown key", { audiance: "a" }, /audiance is unknown/],
    ["no signature", { algorithms: ["none"] }, /algorithms must be one of RS256/],
    ["a shared secret", { algorithms: ["RS256", "HS256"] }, /algorithms must be one of RS256/],
    ["keys without TLS", { "jwks-uri": "http://login.example.com/keys" }, /jwks-uri must be an address/],
    ["an unknown role", { grant: "king=anyone" }, /grant must be a role/],
    ["scopes without openid", { "console-scope": "profile" }, /console-scope must have openid/],
    ["an audience that is no text", { audience: [1] }, /audience must not be empty/],
  ] as const) {
    it(`is refused with ${what}`, () => {
      const issuer = what === "no issuer" ? {} : { issuer: "https://login.example.com" };
      assert.throws(
        () => parseIssuer(JSON.stringify({ ...issuer, ...map })),
        (error) => error instanceof UsageError && message.test(error.message),
      );
    });
  }

  it("has an address with TLS, or on this machine", () => {
    for (const address of ["http://localhost:8080/realms/a", "http://127.0.0.1:1", "http://[::1]:1"])
      assert.equal(parseServerAddress(address), address);
    for (const address of [
      "http://login.example.com",
      "http://127.0.0.1.example.com",
      "http://localhost.example.com",
      "http://10.0.0.1",
      "file:///etc/passwd",
      "ftp://login.example.com",
      "https://ann:secret@login.example.com",
      "https://login.example.com/?a=b",
      "https://login.example.com/#a",
      "login.example.com",
      "",
    ])
      assert.throws(() => parseServerAddress(address), UsageError, address);
  });
});
