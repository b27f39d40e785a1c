import { describe, expect, test } from "vitest";
import { beginSignIn, endSignIn, isReturning, placeBefore, signOutAddress } from "./code-flow.ts";
import type { Issuer } from "./issuer.ts";

const ISSUER: Issuer = { issuer: "https://login.example", clientId: "console", scope: "openid lance" };
const PAGE = "https://lance.example/console/#/table/rows/t";

const ENDPOINTS = {
  issuer: ISSUER.issuer,
  authorization_endpoint: "https://login.example/auth?tenant=a",
  token_endpoint: "https://login.example/token",
  end_session_endpoint: "https://login.example/end",
};

interface Answers {
  readonly document?: object;
  readonly claims?: object;
  readonly token?: object;
}

/** Opens a browser at a page, whose issuer gives an ID token with the nonce of the sign-in. */
function openBrowser({ document, claims, token }: Answers = {}) {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
  const sent: URLSearchParams[] = [];
  let nonce = "";
  const send = async (url: string, init?: RequestInit) => {
    if (url.endsWith("/.well-known/openid-configuration"))
      return Response.json({ ...ENDPOINTS, ...document });
    sent.push(init?.body as URLSearchParams);
    const exp = Date.now() / 1000 + 60;
    const body = btoa(JSON.stringify({ iss: ISSUER.issuer, aud: "console", nonce, exp, ...claims }));
    return Response.json({ access_token: "a", token_type: "Bearer", id_token: `e30.${body}.s`, ...token });
  };
  const at = (address: string) => ({ storage, send, address: new URL(address) });
  return {
    sent,
    kept,
    at,
    /** Leaves for the issuer, and returns what the issuer is asked. */
    async leave(): Promise<URLSearchParams> {
      const { searchParams } = await beginSignIn(ISSUER, at(PAGE));
      nonce = searchParams.get("nonce") ?? "";
      return searchParams;
    },
    /** Comes back with an answer. */
    comeBack: (answer: Record<string, string>) =>
      endSignIn(at(`https://lance.example/console/?${new URLSearchParams(answer)}`)),
  };
}

describe("a sign-in", () => {
  test("asks for a code with a challenge, and exchanges it with the verifier", async () => {
    const { leave, comeBack, sent } = openBrowser();
    const asked = await leave();
    expect(Object.fromEntries(asked)).toMatchObject({
      ...{ tenant: "a", response_type: "code", client_id: "console", scope: "openid lance" },
      ...{ redirect_uri: "https://lance.example/console/", code_challenge_method: "S256" },
    });
    const state = asked.get("state") ?? "";
    expect(await comeBack({ code: "c", state })).toEqual({ issuer: ISSUER, accessToken: "a" });
    const [form = new URLSearchParams()] = sent;
    expect(Object.fromEntries(form)).toMatchObject({
      ...{ grant_type: "authorization_code", code: "c", client_id: "console" },
      redirect_uri: "https://lance.example/console/",
    });
    const verifier = new TextEncoder().encode(form.get("code_verifier") ?? "");
    const hash = Buffer.from(await crypto.subtle.digest("SHA-256", verifier)).toString("base64url");
    expect(hash).toBe(asked.get("code_challenge"));
  });

  test("comes back to the place that it began at", async () => {
    const { leave, at } = openBrowser();
    await leave();
    const back = at("https://lance.example/console/?code=c&state=s");
    expect(isReturning(back.address)).toBe(true);
    expect(placeBefore(back)).toBe("/console/#/table/rows/t");
    expect(isReturning(new URL(PAGE))).toBe(false);
  });

  test("uses an answer once, and none of another sign-in", async () => {
    const { leave, comeBack, sent } = openBrowser();
    const state = (await leave()).get("state") ?? "";
    await expect(comeBack({ code: "c", state: "other" })).rejects.toThrow("belongs to another sign-in");
    await expect(comeBack({ code: "c", state })).rejects.toThrow("belongs to another sign-in");
    expect(sent).toEqual([]);
  });

  test("says why the issuer refuses", async () => {
    const { leave, comeBack } = openBrowser();
    const state = (await leave()).get("state") ?? "";
    await expect(comeBack({ error: "access_denied", error_description: "not you", state })).rejects.toThrow(
      "https://login.example refuses: not you",
    );
  });

  test.each([
    ["names itself as another issuer", { iss: "https://evil.example" }, {}],
    ["names itself by rule, and does not", {}, { authorization_response_iss_parameter_supported: true }],
  ])("is refused where the issuer %s", async (_, answer, document) => {
    const { leave, comeBack, sent } = openBrowser({ document });
    const state = (await leave()).get("state") ?? "";
    await expect(comeBack({ code: "c", state, ...answer })).rejects.toThrow("Another issuer");
    expect(sent).toEqual([]);
  });

  test.each<[string, Answers, RegExp]>([
    ["a nonce of another sign-in", { claims: { nonce: "other" } }, /belongs to another/],
    ["another issuer in its ID token", { claims: { iss: "https://evil.example" } }, /belongs to another/],
    ["an ID token for another client", { claims: { aud: "other" } }, /belongs to another/],
    ["an ID token that another client asked for", { claims: { aud: ["console", "b"], azp: "b" } }, /belongs/],
    ["several audiences, and no client that asked", { claims: { aud: ["console", "b"] } }, /belongs/],
    ["an ID token that has expired", { claims: { exp: 1 } }, /has expired/],
    ["no ID token", { token: { id_token: undefined } }, /no ID token/],
    ["no access token", { token: { access_token: undefined } }, /no access token/],
    [
      "a token of a type that the gateway does not know",
      { token: { token_type: "DPoP" } },
      /no access token/,
    ],
    ["a token endpoint without TLS", { document: { token_endpoint: "http://a.example" } }, /without TLS/],
    ["the document of another issuer", { document: { issuer: "https://evil.example" } }, /another issuer/],
  ])("is refused with %s", async (_, answers, message) => {
    const { leave, comeBack } = openBrowser(answers);
    const signIn = async () => comeBack({ code: "c", state: (await leave()).get("state") ?? "" });
    await expect(signIn()).rejects.toThrow(message);
  });
});

test("signing out leads to the issuer, which leads back", async () => {
  const target = await signOutAddress(ISSUER, openBrowser().at(PAGE));
  expect(target?.href).toBe(
    "https://login.example/end?client_id=console&post_logout_redirect_uri=https%3A%2F%2Flance.example%2Fconsole%2F",
  );
});

test("signing out needs nothing of an issuer that ends no sessions", async () => {
  const { at } = openBrowser({ document: { end_session_endpoint: undefined } });
  expect(await signOutAddress(ISSUER, at(PAGE))).toBeUndefined();
});
