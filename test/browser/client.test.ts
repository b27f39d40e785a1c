import { build } from "esbuild";
import { expect, test } from "vitest";
import { EXPECTED } from "../clients/runtimes/session.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";
import { serveSite } from "./site.ts";

/** The script of the page as a bundler makes it for browsers, by path. */
async function bundle(): Promise<ReadonlyMap<string, string>> {
  const { outputFiles } = await build({
    entryPoints: [new URL("page.ts", import.meta.url).pathname],
    bundle: true,
    splitting: true,
    write: false,
    format: "esm",
    platform: "browser",
    outdir: "/",
  });
  return new Map(outputFiles.map(({ path, text }) => [path, text]));
}

test("a page of another origin lists a namespace, writes a table and reads it", async (t) => {
  const site = await serveSite(t, await bundle());
  const gateway = await startGateway("--cors-origin", site.origin);
  t.onTestFinished(() => gateway.close());
  const page = await openPage(t);
  await page.goto(site.origin);
  for (const kind of ["rest", "connect"])
    expect(await page.evaluate(`work(${JSON.stringify(kind)}, ${JSON.stringify(gateway.uri)})`)).toBe(
      EXPECTED,
    );
  // Google's client reads streams in text mode only.
  expect(await page.evaluate(`workInGrpcWeb("text", ${JSON.stringify(gateway.uri)})`)).toBe(
    "t 4 5 Table 'page-rest$missing' was not found",
  );
});
