import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { openBackend } from "./open-backend.ts";

/** Returns where the backend of some options says that its data is. */
async function placeWith(options: Partial<ServeOptions>): Promise<string | undefined> {
  const log = pino({ level: "silent" });
  const backend = await openBackend({ ...readServeOptions([]), ...options }, { log });
  await backend.close();
  return backend.place;
}

test("a directory tells the place of its tables", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  expect(await placeWith({ backend: "dir", root: path })).toBe(join(await realpath(path), "data"));
});

test("an upstream tells its addresses, and who serves its rows", async () => {
  const uris = ["http://a.example:2333/lance", "http://b.example:2333"];
  expect(await placeWith({ backend: "rest", uris })).toBe(uris.join(", "));
  expect(await placeWith({ backend: "grpc", addresses: ["a.example:1", "dns:///b:2"] })).toBe(
    "a.example:1, dns:///b:2",
  );
  expect(await placeWith({ backend: "rest", uris: ["http://a.example"], rows: "here" })).toBe(
    "http://a.example; rows are read and written here",
  );
});

test("a foreign catalog tells its address, its warehouse and the namespace that is the root", async () => {
  const http = { uris: ["http://catalog.example:8181"], warehouse: "main" };
  expect(await placeWith({ backend: "polaris", ...http })).toBe("http://catalog.example:8181 main");
  expect(await placeWith({ backend: "lakekeeper", ...http, warehouseNamespace: ["a", "b"] })).toBe(
    "http://catalog.example:8181 main$a$b",
  );
  expect(await placeWith({ backend: "unity", ...http })).toBe("http://catalog.example:8181 main");
  expect(await placeWith({ backend: "glue", glueRegion: "eu-central-1" })).toBe("glue.eu-central-1");
  expect(await placeWith({ backend: "glue", glueRegion: "r", uris: ["http://glue.example:1/x"] })).toBe(
    "glue.example:1",
  );
});

test("upkeep of an upstream's tables requires credentials of the gateway itself", async () => {
  const rest = { backend: "rest", uris: ["http://a.example"], rows: "here", tableUpkeep: "on" } as const;
  const refusal = /--table-upkeep on requires credentials of the gateway itself/;
  await expect(placeWith(rest)).rejects.toThrow(refusal);
  const exchange = {
    upstreamIdentity: "token-exchange",
    tokenEndpoint: "https://a.example/token",
    tokenClientId: "gateway",
  } as const;
  await expect(placeWith({ ...rest, ...exchange })).rejects.toThrow(refusal);
  await placeWith({ ...rest, upstreamIdentity: "service", upstreamToken: "own" });
  await placeWith({ ...rest, headers: [["Authorization", "Bearer own"]] });
  await placeWith({ ...rest, backend: "glue", uris: [], glueRegion: "r" });
  await placeWith({ ...rest, rows: "upstream" });
});

test("a gateway for reading only looks after no tables", async (t) => {
  const { path: root, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const log = pino({ level: "silent" });
  async function isLookedAfter(options: Partial<ServeOptions>): Promise<boolean> {
    let started = false;
    const watch = () => {
      started = true;
      return () => {};
    };
    const upkeepMetrics = { done() {}, missed() {}, watch };
    const all = { ...readServeOptions([]), tableUpkeep: "on" as const, ...options };
    const backend = await openBackend(all, { log, upkeepMetrics, looksAfterTables: true });
    await backend.close();
    return started;
  }
  const rest = { backend: "rest", uris: ["http://127.0.0.1:1"], rows: "here" } as const;
  for (const place of [
    { backend: "dir", root },
    { ...rest, headers: [["authorization", "Bearer own"] as const] },
  ]) {
    expect(await isLookedAfter(place)).toBe(true);
    expect(await isLookedAfter({ ...place, readOnly: true })).toBe(false);
  }
});
