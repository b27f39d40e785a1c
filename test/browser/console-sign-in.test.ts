import type { Page, Route } from "playwright-core";
import { beforeAll, describe, expect, type TestContext, test } from "vitest";
import { startGateway } from "../clients/support/gateway.ts";
import { newKey, startIssuer } from "../clients/support/issuer.ts";
import { until } from "../support/until.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, isTooWide, PHONE, takePicture, violationsOf } from "./console-page.ts";
import { AUDIENCE, annsPage, peopleOf } from "./people.ts";

/** Starts a gateway whose console is a client of an issuer, and opens a table of it, which needs a sign-in. */
async function openSignedOut(t: TestContext, audience = AUDIENCE) {
  const issuer = await startIssuer(t);
  const gateway = await startGateway(
    ...["--auth", "oidc", "--oidc-issuer", issuer.issuer, "--oidc-audience", audience],
    ...["--console-oidc-client-id", "console", "--console-oidc-scope", "openid lance.write"],
    ...["--grant", "owner=scope:lance.write"],
  );
  t.onTestFinished(() => gateway.close());
  issuer.serve(peopleOf(`${gateway.uri}/console/`, [await newKey("0")]), annsPage);
  // The gateway started before the issuer answered, and looks for its keys at intervals: until then no token can be checked.
  const headers = { authorization: `Bearer ${tokenOf(issuer.issuer)}` };
  await until(async () => (await fetch(`${gateway.uri}/v1/namespace/$/list`, { headers })).status === 401);
  const page = await openPage(t);
  await page.goto(`${gateway.uri}/console/#/table/schema/missing`);
  return {
    page,
    gateway,
    signIn: page.getByRole("button", { name: `Sign in at ${new URL(issuer.issuer).host}` }),
  };
}

/** A token that says it is an issuer's, and that nobody has signed. */
function tokenOf(iss: string): string {
  const parts = [
    { alg: "RS256", kid: "0" },
    { iss, aud: AUDIENCE, exp: 2 ** 32 },
  ];
  return [...parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")), "AAAA"].join(".");
}

const confirm = (page: Page) => page.getByRole("button", { name: "I am Ann" }).click();
const isOnTable = (page: Page) => page.getByText("table not found").waitFor();

beforeAll(buildConsole);

describe("signing in at an issuer", () => {
  test("leads to the issuer and back to the page, which stays signed in until its user signs out", async (t) => {
    const { page, signIn, gateway } = await openSignedOut(t);
    await signIn.waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await takePicture(page, "sign-in-issuer-light");
    await page.setViewportSize(PHONE);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await violationsOf(page)).toEqual([]);
    expect(await isTooWide(page)).toBe(false);
    await takePicture(page, "sign-in-issuer-dark-phone");
    await signIn.click();
    await confirm(page);
    await isOnTable(page);
    expect(page.url()).toBe(`${gateway.uri}/console/#/table/schema/missing`);
    await page.reload();
    await isOnTable(page);

    await page.getByRole("button", { name: "Sign out" }).click();
    // The issuer asks before it ends its session.
    await page.getByRole("button", { name: "Yes, sign me out" }).click();
    await signIn.click();
    await page.getByRole("button", { name: "I am Ann" }).waitFor();
  });

  test("happens again by itself when the gateway no longer accepts the token", async (t) => {
    const { page, signIn, gateway } = await openSignedOut(t);
    await signIn.click();
    await confirm(page);
    await isOnTable(page);
    const outdate = (route: Route) =>
      route.continue({ headers: { ...route.request().headers(), authorization: "Bearer of-yesterday" } });
    await page.route("**/lance.namespace.v1.LanceNamespaceService/*", outdate, { times: 1 });
    const requested = page.waitForRequest(/\/token$/);
    await page.goto(`${gateway.uri}/console/#/table/rows/other`);
    await requested;
    await isOnTable(page);
    expect(page.url()).toBe(`${gateway.uri}/console/#/table/rows/other`);
  });

  test("is offered again, with the reason, where the gateway does not accept the issuer's tokens", async (t) => {
    const { page, signIn } = await openSignedOut(t, "another audience");
    await signIn.click();
    await confirm(page);
    await page.getByText("the token is for another audience").waitFor();
    await signIn.waitFor();
  });

  test("counts only for the tab that began it", async (t) => {
    const { page, signIn, gateway } = await openSignedOut(t);
    await signIn.waitFor();
    await page.goto(`${gateway.uri}/console/?code=stolen&state=guessed`);
    await page.getByRole("alert").getByText("belongs to another sign-in").waitFor();
    expect(page.url()).toBe(`${gateway.uri}/console/`);
  });
});
