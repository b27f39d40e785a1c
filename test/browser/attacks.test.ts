import { expect, type TestContext, test } from "vitest";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";
import { serveSite } from "./site.ts";

/** A name that leads to this machine, as a server of names can answer at any time. */
const EVIL = "evil.example";
const RESOLVER = `--host-resolver-rules=MAP ${EVIL} 127.0.0.1`;

/** Leaves it to the gateway to refuse calls that lead from another network to this machine. */
const UNPROTECTED = "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessChecks";

/** Starts a gateway that is open to this machine, with a table. */
async function startOpen(t: TestContext) {
  const gateway = await startGateway();
  t.onTestFinished(() => gateway.close());
  const post = async (path: string) =>
    (await fetch(`${gateway.uri}${path}`, { method: "POST", body: "{}", headers: JSON_TYPE })).status;
  expect(await post("/v1/table/t/declare")).toBe(200);
  return { uri: gateway.uri, exists: async () => (await post("/v1/table/t/exists")) === 200 };
}

const JSON_TYPE = { "content-type": "application/json" };

/** Calls from a page, as the text of a function of the gateway's address; each returns what the page gets to see. */
const CALLS: Readonly<Record<string, string>> = {
  "a list": "(uri) => fetch(uri + '/v1/namespace/$/table/list').then((answer) => answer.text())",
  "a drop in JSON": `(uri) => fetch(uri + '/v1/table/t/drop', {
    method: 'POST', headers: ${JSON.stringify(JSON_TYPE)}, body: '{}' }).then((answer) => answer.text())`,
  "a drop that needs no preflight": `(uri) => fetch(uri + '/v1/table/t/drop', {
    method: 'POST', mode: 'no-cors', body: '{}' }).then((answer) => answer.text())`,
  "a drop by Connect": `(uri) => fetch(uri + '/lance.namespace.v1.LanceNamespaceService/DropTable', {
    method: 'POST', mode: 'no-cors', body: '{"id":["t"]}' }).then((answer) => answer.text())`,
  "a drop with credentials": `(uri) => fetch(uri + '/v1/table/t/drop', {
    method: 'POST', mode: 'no-cors', credentials: 'include' }).then((answer) => answer.text())`,
  "a form": `(uri) => new Promise((resolve) => {
    const frame = Object.assign(document.createElement('iframe'), { name: 'answer' });
    const form = Object.assign(document.createElement('form'), {
      action: uri + '/v1/table/t/drop', method: 'post', enctype: 'text/plain', target: 'answer' });
    document.body.append(frame, form);
    frame.onload = () => resolve(frame.contentDocument?.body?.textContent ?? '');
    form.submit();
  })`,
};

test("a page of another site reads and changes nothing", async (t) => {
  const { uri, exists } = await startOpen(t);
  const site = await serveSite(t, new Map([["/page.js", ""]]));
  const page = await openPage(t, RESOLVER);
  await page.goto(`http://${EVIL}:${new URL(site.origin).port}`);
  for (const [name, call] of Object.entries(CALLS)) {
    const seen = await page.evaluate(`(${call})(${JSON.stringify(uri)}).catch((error) => error.name)`);
    expect([name, seen]).toEqual([name, expect.stringMatching(/^(?:TypeError)?$/)]);
    expect([name, await exists()]).toEqual([name, true]);
  }
});

test("a page whose own name was made to lead to the gateway reads and changes nothing", async (t) => {
  const { uri, exists } = await startOpen(t);
  const rebound = `http://${EVIL}:${new URL(uri).port}`;
  const page = await openPage(t, RESOLVER, UNPROTECTED);
  // The page is that of the attacker's server, to which the name has led before.
  await page.route(`${rebound}/`, (route) => route.fulfill({ contentType: "text/html", body: "<body>" }));
  await page.goto(`${rebound}/`);
  for (const [name, call] of Object.entries(CALLS)) {
    const seen = await page.evaluate(`(${call})(${JSON.stringify(rebound)}).catch((error) => error.name)`);
    // The answer belongs to the page's own origin, so that the page sees the refusal.
    expect([name, seen]).toEqual([name, expect.stringContaining(EVIL)]);
    expect([name, await exists()]).toEqual([name, true]);
  }
});
