import { expect, test } from "vitest";
import { consoleIssuersOf, consoleSignInOf } from "./console-issuers.ts";

const [A, B] = ["https://a.example", "https://b.example"] as const;

test("the console signs in at the issuers that it is a client of", () => {
  expect(consoleIssuersOf({ oidcIssuers: [{ issuer: A }, { issuer: B, consoleClientId: "b" }] })).toEqual([
    { issuer: B, clientId: "b", scope: "openid" },
  ]);
});

test("an issuer's own settings override those of all issuers", () => {
  const own = { issuer: B, consoleClientId: "b", consoleScope: "openid lance" };
  const all = { consoleOidcClientId: "console", consoleOidcScope: "openid profile" };
  expect(consoleIssuersOf({ oidcIssuers: [{ issuer: A }, own], ...all })).toEqual([
    { issuer: A, clientId: "console", scope: "openid profile" },
    { issuer: B, clientId: "b", scope: "openid lance" },
  ]);
});

test("the console offers the kinds of credentials that the gateway checks", () => {
  expect(consoleSignInOf({ auth: ["api-key"] }, [undefined])).toEqual({
    methods: ["api-key"],
    hasDatabases: false,
    issuers: [],
  });
  const both = consoleSignInOf({ auth: ["oidc", "mtls", "api-key"] }, ["a", "b", undefined]);
  expect(both).toMatchObject({ methods: ["api-key", "token"], hasDatabases: true });
  expect(consoleSignInOf({ auth: ["mtls"] }, ["a"])).toMatchObject({ methods: [], hasDatabases: false });
});
