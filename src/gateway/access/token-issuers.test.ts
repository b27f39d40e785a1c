import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it } from "vitest";
import { claims, forge, sign, signingKey } from "../../../test/fixtures/auth/tokens.ts";
import { makeCertificates } from "../../../test/support/certificates.ts";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { proveByTokens } from "../../auth/tokens/authenticate-by-token.ts";
import { UsageError } from "../../config/option-spec.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { openAuthenticator } from "./open-access.ts";
import { openVerifiers } from "./token-issuers.ts";

const log = pino({ level: "silent" });
const options = (...args: readonly string[]) => readServeOptions(sourcesOf(args, {}));
const OIDC = ["--auth", "oidc", "--oidc-audience", "lance"];

describe("the issuers of the options", () => {
  it("have prefixes that tell their callers apart, as soon as there are several", async () => {
    const [a, b] = ["https://a.example.com", "https://b.example.com"];
    const prefixes = async (...args: readonly string[]) =>
      (await openVerifiers(options(...OIDC, ...args), log)).map(({ issuer }) => issuer.prefix);
    assert.deepEqual(await prefixes("--oidc-issuer", a), [""]);
    assert.deepEqual(await prefixes("--oidc-issuer", a, "--oidc-issuer", b), [`${a}#`, `${b}#`]);
    const own = (issuer: string, prefix: string) => JSON.stringify({ issuer, prefix });
    const both = (...[ofA, ofB]: readonly string[]) =>
      prefixes("--oidc-issuer", own(a, ofA as string), "--oidc-issuer", own(b, ofB as string));
    assert.deepEqual(await both("x:", "y:"), ["x:", "y:"]);
    // Where x: gives the name y:ann, its caller would be the one that x:y: names ann.
    for (const [ofA, ofB] of [
      ["x:", "x:"],
      ["x:", "x:y:"],
      ["x:y:", "x:"],
    ])
      await assert.rejects(both(ofA as string, ofB as string), /different prefixes/);
    await assert.rejects(prefixes("--oidc-issuer", a, "--oidc-issuer", a), /given twice|different prefixes/);
  });

  for (const [args, message] of [
    [["--auth", "oidc"], /requires --oidc-issuer/],
    [["--auth", "oidc", "--oidc-issuer", "https://a.example.com"], /requires --oidc-audience/],
    [["--auth", "kubernetes"], /requires --kubernetes-audience/],
    [
      ["--auth", "kubernetes", "--kubernetes-audience", "a", "--kubernetes-token-file", "/nowhere"],
      /requires --kubernetes-issuer outside of a cluster/,
    ],
    [["--oidc-issuer", "https://a.example.com"], /--oidc-issuer requires --auth oidc/],
    [["--auth", "api-key", "--grant", "reader=anyone"], /--grant requires --auth oidc or kubernetes/],
  ] as const) {
    it(`are refused: ${args.join(" ")}`, async () => {
      await assert.rejects(
        openAuthenticator(options(...args), log),
        (error) => error instanceof UsageError && message.test(error.message),
      );
    });
  }
});

describe("a gateway in a Kubernetes cluster", () => {
  it("takes the issuer from its own token, and the keys from the API server by its own rights", async (context) => {
    const issuer = "https://kubernetes.default.svc.cluster.local";
    const [key, { ca, server }, { path, remove }] = await Promise.all([
      signingKey("k", "RS256"),
      makeCertificates(),
      temporaryDirectory(),
    ]);
    const asked: (string | undefined)[] = [];
    const api = createServer(server, ({ url, headers }, response) => {
      asked.push(url, headers.authorization);
      response.end(JSON.stringify({ keys: [key.jwk] }));
    });
    api.listen(0, "127.0.0.1");
    await once(api, "listening");
    context.onTestFinished(async () => {
      api.close();
      await remove();
    });
    const own = forge({ alg: "RS256" }, { iss: issuer, sub: "system:serviceaccount:lance:gateway" }, "AAAA");
    const [tokenFile, caFile] = [join(path, "token"), join(path, "ca.crt")];
    await Promise.all([writeFile(tokenFile, `${own}\n`), writeFile(caFile, ca)]);
    const verifiers = await openVerifiers(
      options(
        ...["--auth", "kubernetes", "--kubernetes-audience", "lance", "--kubernetes-token-file", tokenFile],
        ...["--kubernetes-ca-file", caFile, "--grant", "writer=group:system:serviceaccounts:prod"],
        ...["--kubernetes-api-server", `https://127.0.0.1:${(api.address() as AddressInfo).port}`],
      ),
      log,
    );
    const sub = "system:serviceaccount:prod:etl";
    const authToken = await sign(key, claims({ iss: issuer, sub }));
    const way = proveByTokens({ verifiers });
    const principal = await way.prove({ identity: { apiKey: undefined, authToken } });
    assert.deepEqual([principal?.name, principal?.role], [sub, "writer"]);
    assert.deepEqual(asked, ["/openid/v1/jwks", `Bearer ${own}`]);
  });
});
