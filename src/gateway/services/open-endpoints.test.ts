import { expect, test } from "vitest";
import { fakeService } from "../../../test/fixtures/wires/grpc.ts";
import type { McpCaller } from "../../namespace/service.ts";
import { openDocument, openMcp } from "./open-endpoints.ts";

test("the document names the ways of authentication, is made once, and can be turned off", async () => {
  const documents = openDocument({ auth: ["api-key"] });
  const text = await documents?.json();
  expect(JSON.parse(text ?? "").security).toEqual([{ ApiKey: [] }]);
  expect(await documents?.json()).toBe(text);
  expect(openDocument({ noDocs: true })).toBeUndefined();
});

test("the page comes with its script and its style", async () => {
  const documents = openDocument({});
  expect(await documents?.file("index.html")).toContain('src="/docs/docs.js"');
  expect(await documents?.file("docs.js")).toContain("fetch(");
  expect(await documents?.file("docs.css")).toContain("color-scheme");
});

test("statements of agents from one address with other credentials for the upstream are those of other callers", async () => {
  const keys: string[] = [];
  const runAs = (caller: string) => {
    keys.push(caller);
    return async function* () {};
  };
  const answer = await openMcp(() => ({}), fakeService({}), { runAs })?.load();
  const body = {
    ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
  };
  async function ask(headers: Record<string, string>, principal?: string): Promise<void> {
    const reception = principal && { principal: { name: principal, by: "api-key" }, by: {}, at: 0 };
    const caller = { headers, peer: "192.0.2.1", reception };
    const accept = "application/json, text/event-stream";
    const request = new Request("http://localhost/mcp", {
      ...{ method: "POST", headers: { accept, "content-type": "application/json" } },
      body: JSON.stringify(body),
    });
    expect((await answer?.(request, body, caller as unknown as McpCaller))?.status).toBe(200);
  }
  await ask({ "x-api-key": "a" });
  await ask({ "x-api-key": "a" });
  await ask({ "x-api-key": "b" });
  await ask({ authorization: "Bearer a" });
  await ask({ "x-api-key": "a" }, "ada");
  await ask({ "x-api-key": "b" }, "ada");
  const [first, ...others] = keys.map((key) => keys.indexOf(key));
  expect([first, ...others]).toEqual([0, 0, 2, 3, 4, 4]);
});
