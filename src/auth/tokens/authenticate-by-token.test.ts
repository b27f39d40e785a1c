import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { CompactSign, type CryptoKey, exportSPKI, importJWK, type JWTPayload, SignJWT } from "jose";
import { afterEach, beforeAll, describe, it, vi } from "vitest";
import {
  AUDIENCE,
  claims,
  forge,
  ISSUER,
  type SigningKey,
  seconds,
  shownKeys,
  sign,
  signingKey,
  trustedIssuer,
  verifierWith,
} from "../../../test/fixtures/auth/tokens.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isLanceError, type LanceError } from "../../namespace/errors.ts";
import type { Way } from "../authenticator.ts";
import { createVerifiedTokens, proveByTokens } from "./authenticate-by-token.ts";
import type { Keys } from "./key-set.ts";
import type { TrustedIssuer } from "./verify.ts";

const OTHER = "https://other.example.com";

async function prove(way: Way, authToken: string): Promise<Principal | undefined> {
  return way.prove({ identity: { apiKey: undefined, authToken } });
}

function refusal(way: Way, token: string): Promise<LanceError> {
  return prove(way, token).then(
    () => assert.fail("the token is accepted"),
    (error: LanceError) => {
      assert.ok(isLanceError(error, "Unauthenticated"), String(error));
      const challenge = error.headers["www-authenticate"] ?? "";
      assert.match(
        challenge,
        /^Bearer realm="lance-gateway", error="invalid_token", error_description="[^"]+"$/,
      );
      return error;
    },
  );
}

describe("a bearer token", () => {
  let keys: Record<"ec" | "rsa" | "ed" | "other", SigningKey>;
  beforeAll(async () => {
    const [ec, rsa, ed, other] = await Promise.all([
      signingKey("ec"),
      signingKey("rsa", "RS256"),
      signingKey("ed", "EdDSA"),
      signingKey("ec"),
    ]);
    keys = { ec, rsa, ed, other };
  });
  afterEach(() => void vi.restoreAllMocks());

  it("is refused if it is of another type, or bound to a key", async () => {
    const { way } = gateway();
    for (const typ of ["logout+jwt", "dpop+jwt", "application/secevent+jwt", "id+jwt", ""])
      await refusal(way, await sign(keys.ec, claims(), { typ }));
    await refusal(way, await sign(keys.ec, claims({ cnf: { jkt: "thumbprint" } })));
    for (const typ of ["JWT", "jwt", "at+jwt", "application/at+jwt"])
      assert.equal((await prove(way, await sign(keys.ec, claims(), { typ })))?.name, "ann");
  });

  /** A gateway that trusts an issuer, and another one with another key of the same name. */
  function gateway(changes: Partial<TrustedIssuer> = {}) {
    const shown = shownKeys(keys.ec, keys.rsa, keys.ed);
    const other = trustedIssuer({ issuer: OTHER, prefix: "other:" });
    const verifiers = [
      verifierWith(shown, trustedIssuer(changes), { cooldownMs: 0 }),
      verifierWith(shownKeys(keys.other), other),
    ];
    return { way: proveByTokens({ verifiers }), shown };
  }

  for (const name of ["ec", "rsa", "ed"] as const) {
    it(`that a key of the kind ${name} has signed names its caller`, async () => {
      const payload = claims({ groups: ["data", "ops"], jti: "token-1" });
      const principal = await prove(gateway().way, await sign(keys[name], payload));
      const expected = { by: "oidc", name: "ann", credentialId: "token-1", role: "none" };
      assert.deepEqual(principal, { ...expected, groups: ["data", "ops"], claims: payload });
    });
  }

  const rejected: Readonly<Record<string, [token: () => Promise<string> | string, reason: RegExp]>> = {
    "without a signature (alg none)": [() => forge({ alg: "none" }, claims()), /algorithm/],
    "without a signature (alg NONE)": [() => forge({ alg: "NONE", kid: "ec" }, claims()), /algorithm/],
    "whose secret is the public key in PEM": [
      async () => {
        const head = forge({ alg: "HS256", kid: "rsa" }, claims()).slice(0, -1);
        const pem = await exportSPKI((await importJWK(keys.rsa.jwk)) as CryptoKey);
        return `${head}.${createHmac("sha256", pem).update(head).digest("base64url")}`;
      },
      /algorithm/,
    ],
    "whose secret is a part of the public key": [
      () =>
        new SignJWT(claims())
          .setProtectedHeader({ alg: "HS256", kid: "rsa" })
          .sign(Buffer.from(keys.rsa.jwk.n as string, "base64url")),
      /algorithm/,
    ],
    "by an algorithm that is not allowed": [
      () => forge({ alg: "ES384", kid: "ec" }, claims(), "AAAA"),
      /algorithm/,
    ],
    "for another audience": [() => sign(keys.ec, claims({ aud: "mail" })), /another audience/],
    "without an audience": [() => sign(keys.ec, claims({ aud: [] })), /another audience/],
    "of another issuer that claims to be this one": [() => sign(keys.other), /not valid/],
    "of this issuer that claims to be another one": [
      () => sign(keys.ec, claims({ iss: OTHER })),
      /not valid/,
    ],
    "of an issuer that nobody knows": [
      () => sign(keys.ec, claims({ iss: "https://evil.example.com" })),
      /issuer/,
    ],
    "of an issuer whose name only begins alike": [
      () => sign(keys.ec, claims({ iss: `${ISSUER}/` })),
      /issuer/,
    ],
    "with a list of issuers": [() => sign(keys.ec, { ...claims(), iss: [ISSUER] as never }), /not valid/],
    "without an issuer": [() => sign(keys.ec, { ...claims(), iss: undefined as never }), /issuer/],
    "that has expired": [() => sign(keys.ec, claims({ exp: seconds(-31) })), /has expired/],
    "that is not valid yet": [() => sign(keys.ec, claims({ nbf: seconds(60) })), /not valid yet/],
    "that never expires": [() => sign(keys.ec, { ...claims(), exp: undefined as never }), /when it expires/],
    "whose expiry is a text": [() => sign(keys.ec, { ...claims(), exp: "9999999999" as never }), /expires/],
    "with a changed claim": [
      async () => {
        const [head, , signature] = (await sign(keys.ec)).split(".");
        const changed = forge({}, claims({ sub: "root" })).split(".")[1];
        return `${head}.${changed}.${signature}`;
      },
      /not valid/,
    ],
    "whose key has a name that is a path": [
      () => sign(keys.other, claims(), { kid: "../../../../dev/null" }),
      /not valid/,
    ],
    "whose key has a name that is an address": [
      () => sign(keys.other, claims(), { kid: "http://169.254.169.254/latest" }),
      /not valid/,
    ],
    "whose key has a name that is a query": [
      () => sign(keys.other, claims(), { kid: "x' OR 1=1 --" }),
      /not valid/,
    ],
    "whose key is named like a property of objects": [
      () => sign(keys.other, claims(), { kid: "__proto__" }),
      /not valid/,
    ],
    "that brings its own key": [() => sign(keys.other, claims(), { jwk: keys.other.jwk }), /not valid/],
    "with a critical header that nobody knows": [
      async () => {
        const head = { alg: "ES256", kid: "ec", crit: ["must"], must: true };
        return forge(head, claims(), "AAAA");
      },
      /not valid/,
    ],
    "whose payload is no object": [
      () =>
        new CompactSign(Buffer.from("[]"))
          .setProtectedHeader({ alg: "ES256", kid: "ec" })
          .sign(keys.ec.privateKey),
      /not a signed/,
    ],
    "that is encrypted": [() => "eyJhbGciOiJkaXIifQ..a.b.c", /not a signed/],
    "that is no token": [() => "hello", /not a signed/],
    "that is empty": [() => "", /not a signed/],
    "of two tokens": [
      async () => `${await sign(keys.ec)}, Bearer ${await sign(keys.ec)}`,
      /not a signed|not valid/,
    ],
    "longer than any header": [() => sign(keys.ec, claims({ pad: "x".repeat(20_000) })), /too long/],
    "with ten thousand groups": [
      () => sign(keys.ec, claims({ groups: Array.from({ length: 10_000 }, () => "") })),
      /too long/,
    ],
    "with more groups than anybody has": [
      () => sign(keys.ec, claims({ groups: Array.from({ length: 1_001 }, () => "g") })),
      /more than 1000 groups/,
    ],
    "whose groups are no texts": [() => sign(keys.ec, claims({ groups: [{ name: "data" }] })), /groups/],
    "without a name": [() => sign(keys.ec, { ...claims(), sub: undefined as never }), /name its caller/],
    "with half a surrogate pair in a name": [
      () => sign(keys.ec, claims({ sub: "ann\ud83d" })),
      /name its caller/,
    ],
    "with half a surrogate pair in a group": [
      () => sign(keys.ec, claims({ groups: ["data\ud83d"] })),
      /groups that are no texts/,
    ],
    "with a name that breaks lines": [() => sign(keys.ec, claims({ sub: "ann\nowner" })), /name its caller/],
    "with a name that is too long": [
      () => sign(keys.ec, claims({ sub: "a".repeat(513) })),
      /name its caller/,
    ],
    "with the name of a service account": [
      () => sign(keys.ec, claims({ sub: "system:serviceaccount:prod:etl" })),
      /only Kubernetes/,
    ],
    "with a group of service accounts": [
      () => sign(keys.ec, claims({ groups: ["system:serviceaccounts"] })),
      /only Kubernetes/,
    ],
  };
  for (const [what, [token, reason]] of Object.entries(rejected)) {
    it(`${what} is refused`, async () => {
      assert.match((await refusal(gateway().way, await token())).message, reason);
    });
  }

  it("cannot make the gateway fetch keys or certificates from an address (jku, x5u)", async ({
    onTestFinished,
  }) => {
    let requests = 0;
    const server = createServer((_, response) => {
      requests += 1;
      response.end(JSON.stringify({ keys: [keys.other.jwk] }));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    for (const header of [{ jku: address }, { x5u: address }, { jku: address, kid: address }])
      await refusal(gateway().way, await sign(keys.other, claims(), header));
    assert.equal(requests, 0);
  });

  it("of an unknown issuer does not make the gateway fetch keys", async () => {
    const { way, shown } = gateway();
    await refusal(way, await sign(keys.ec, claims({ iss: "https://evil.example.com" })));
    await refusal(way, forge({ alg: "none" }, claims()));
    assert.equal(shown.fetches, 0);
  });

  it("may be a little late or early for a clock that is wrong", async () => {
    const { way } = gateway();
    assert.ok(await prove(way, await sign(keys.ec, claims({ exp: seconds(-10), nbf: seconds(10) }))));
  });

  it("lacks a claim that its issuer must give, or has another value of it", async () => {
    const { way } = gateway({
      requiredClaims: [
        ["tenant", "blue"],
        ["email_verified", "true"],
      ],
    });
    const token = (more: JWTPayload) => sign(keys.ec, claims(more));
    assert.ok(await prove(way, await token({ tenant: ["red", "blue"], email_verified: true })));
    for (const more of [
      { tenant: "blue" },
      { tenant: "red", email_verified: true },
      { email_verified: true },
    ])
      assert.match((await refusal(way, await token(more))).message, /lacks a claim/);
  });

  it("may name its caller by an address only if the issuer has verified it", async () => {
    const { way } = gateway({ nameClaim: "email" });
    const token = (more: JWTPayload) => sign(keys.ec, claims({ email: "ann@example.com", ...more }));
    assert.equal((await prove(way, await token({})))?.name, "ann@example.com");
    assert.equal((await prove(way, await token({ email_verified: true })))?.name, "ann@example.com");
    await refusal(way, await token({ email_verified: false }));
    await refusal(way, await token({ email_verified: "true" }));
  });

  it("of one issuer never names the caller of another", async () => {
    const { way } = gateway();
    const principal = await prove(way, await sign(keys.other, claims({ iss: OTHER, groups: ["data"] })));
    assert.equal(principal?.name, "other:ann");
    assert.deepEqual(principal?.groups, ["other:data"]);
  });

  it("is verified once, until it expires", async () => {
    const { way } = gateway();
    const token = await sign(keys.ec, claims({ exp: seconds(60) }));
    await prove(way, token);
    await prove(way, token);
    const identity = { apiKey: undefined, authToken: token };
    assert.ok(!(way.prove({ identity }) instanceof Promise));
    const now = Date.now();
    vi.spyOn(Date, "now").mockReturnValue(now + 61_000);
    assert.ok(way.prove({ identity }) instanceof Promise);
  });

  it("that was accepted is refused once its key is withdrawn", async () => {
    const shown = shownKeys(keys.ec);
    const way = proveByTokens({ verifiers: [verifierWith(shown, trustedIssuer(), { refreshMs: 0 })] });
    const token = await sign(keys.ec);
    await prove(way, token);
    assert.equal((await prove(way, token))?.name, "ann");
    shown.keys = [keys.rsa];
    await vi.waitFor(() => refusal(way, token), { timeout: 60_000 });
  });

  it("cannot be checked while its issuer is away, which is no refusal", async () => {
    const away = { fetch: () => Promise.reject(new Error("no route to host")) };
    const way = proveByTokens({ verifiers: [verifierWith(away)] });
    await assert.rejects(prove(way, await sign(keys.ec)), (error) =>
      isLanceError(error, "ServiceUnavailable"),
    );
  });

  it("ends at the gateway unless the operator passes it on", () => {
    assert.deepEqual(proveByTokens({ verifiers: [] }).ends, ["authToken"]);
    assert.deepEqual(proveByTokens({ verifiers: [], passesOn: true }).ends, []);
  });
});

describe("a token of a Kubernetes service account", () => {
  it("names the account and its groups", async () => {
    const key = await signingKey("k", "RS256");
    const issuer = trustedIssuer({ by: "kubernetes", audiences: [AUDIENCE] });
    const way = proveByTokens({ verifiers: [verifierWith(shownKeys(key), issuer)] });
    const sub = "system:serviceaccount:prod:etl";
    const principal = await prove(way, await sign(key, claims({ sub, groups: ["invented"] })));
    assert.deepEqual([principal?.by, principal?.name], ["kubernetes", sub]);
    assert.deepEqual(principal?.groups, ["system:serviceaccounts", "system:serviceaccounts:prod"]);
    for (const wrong of [
      "ann",
      "system:node:n1",
      "system:serviceaccount:prod",
      "system:serviceaccount:a:b:c",
    ])
      assert.match((await refusal(way, await sign(key, claims({ sub: wrong })))).message, /service account/);
  });
});

const keys: Keys = { find: () => assert.fail() };
const named = (name: string): Principal => ({
  ...{ by: "oidc", name, credentialId: name, role: "none", groups: [], claims: {} },
});
const valid = (name: string) => ({
  ...{ principal: named(name), expiresAt: Date.now() + 600_000, keys, current: () => keys },
});

describe("the memory of verified tokens", () => {
  it("forgets the token first that was used longest ago", () => {
    const tokens = createVerifiedTokens({ maxTokens: 2 });
    for (const name of ["a", "b"]) tokens.add(name, valid(name));
    assert.equal(tokens.find("a")?.name, "a");
    tokens.add("c", valid("c"));
    assert.deepEqual(
      ["a", "b", "c"].map((token) => tokens.find(token)?.name),
      ["a", undefined, "c"],
    );
  });

  it("is bounded by the length of all tokens, however often they are verified and used", () => {
    const tokens = createVerifiedTokens({ maxCharacters: 10 });
    for (let turn = 0; turn < 100; turn += 1) {
      tokens.add("aaaa", valid("a"));
      assert.equal(tokens.find("aaaa")?.name, "a");
    }
    tokens.add("bbbb", valid("b"));
    assert.equal(tokens.find("aaaa")?.name, "a");
    tokens.add("cccc", valid("c"));
    assert.equal(tokens.find("bbbb"), undefined);
    assert.equal(tokens.find("cccc")?.name, "c");
  });

  it("gives a token up with the keys of its issuer", () => {
    const tokens = createVerifiedTokens();
    let current: Keys | undefined = keys;
    tokens.add("a", { ...valid("a"), current: () => current });
    assert.equal(tokens.find("a")?.name, "a");
    current = undefined;
    assert.equal(tokens.find("a"), undefined);
  });
});
