import fastify from "fastify";
import { describe, expect, test } from "vitest";
import { addRootPage } from "./root-page.ts";

function createApp(options = { console: true, documents: true, metrics: true, mcp: true }) {
  const app = fastify();
  addRootPage(app, options);
  return app;
}

describe("the page at /", () => {
  test("says what is where, in text", async () => {
    const { statusCode, headers, body } = await createApp().inject("/");
    expect([statusCode, headers["content-type"], headers.vary]).toEqual([200, "text/plain", "accept"]);
    for (const path of [
      "/v1",
      "/lance.namespace.v1.LanceNamespaceService/",
      "/docs",
      "/console/",
      "/metrics",
      "/mcp",
    ])
      expect(body).toMatch(new RegExp(`^ {2}${path} +\\w`, "m"));
  });

  test("says it as JSON to programs that accept that", async () => {
    const { json } = await createApp().inject({ url: "/", headers: { accept: "application/json" } });
    expect(json().paths["/v1"]).toMatch(/^REST API/);
  });

  test("names what is turned on alone, and leads browsers to the console if there is one", async () => {
    const browser = { url: "/", headers: { accept: "text/html,*/*" } };
    expect((await createApp().inject(browser)).headers.location).toBe("console/");
    const { headers, body } = await createApp({
      console: false,
      documents: false,
      metrics: false,
      mcp: false,
    }).inject(browser);
    expect([headers["content-type"], headers.location]).toEqual(["text/plain", undefined]);
    expect(body).not.toMatch(/console|docs|metrics|mcp/);
  });

  test("gives way to a route of a plugin, and leaves other methods alone", async () => {
    const app = createApp();
    app.get("/", () => "of the plugin");
    expect((await app.inject("/")).body).toBe("of the plugin");
    expect((await createApp().inject({ method: "POST", url: "/" })).statusCode).toBe(404);
    expect((await createApp().inject({ method: "HEAD", url: "/" })).statusCode).toBe(200);
  });
});
