import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { audit } from "../../bench/soak/audit.ts";
import { type Call, prepare, work } from "../../bench/soak/clients.ts";
import { streamOf, TABLE } from "../../bench/soak/rows.ts";
import { openPage } from "../browser/chromium.ts";
import { violationsOf } from "../browser/console-page.ts";
import { NODE } from "../support/node-command.ts";
import { createRestClient } from "../support/rest-client.ts";
import { startGateway } from "./support/gateway.ts";

const MAIN = join(import.meta.dirname, "..", "..", "bench", "main.ts");

/** Runs a soak; rejects if it ends with a code other than 0. */
async function soak(...args: readonly string[]): Promise<{ printed: string; report: string }> {
  const [node, ...flags] = NODE;
  const report = join(mkdtempSync(join(tmpdir(), "lance-gateway-soak-")), "report.html");
  const options = [...flags, MAIN, "soak", "--report", report, ...args];
  return { printed: (await promisify(execFile)(node, options)).stdout, report };
}

describe("the soak", () => {
  test("passes a minute with restarts, and writes a page that needs nothing else", async (t) => {
    const { printed, report } = await soak("--minutes", "1", "--restarts", "2");
    await t.annotate(printed);
    const page = readFileSync(report, "utf8");
    expect(page).not.toMatch(/https?:|<script|<link|src=|url\(/);
    const view = await openPage(t);
    await view.goto(pathToFileURL(report).href);
    expect(await view.getByRole("heading", { level: 1 }).textContent()).toContain("passed");
    expect(await view.getByRole("img").count()).toBe(6);
    for (const colorScheme of ["light", "dark"] as const) {
      await view.emulateMedia({ colorScheme });
      expect(await violationsOf(view)).toEqual([]);
    }
  });

  test("fails where calls fail", async () => {
    const short = ["--minutes", "0.05", "--clients", "1", "--pause", "0", "--restarts", "0"];
    const failure = await soak(...short, "--protocols", "REST", "--", "--rate-limit", "address=1:9").catch(
      (error) => error,
    );
    expect(failure).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/\| Failed calls \| \d+ \| \*\*no\*\* \|/),
    });
  });

  test("finds rows that are lost, doubled or changed behind its clients, and answers that show it", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    const port = Number(new URL(gateway.uri).port);
    const { client, close } = createRestClient(port);
    t.onTestFinished(close);
    const ledgers = await prepare(client, 2, { rows: 10_000, isSteady: false });
    expect(await audit(client, ledgers)).toMatchObject({ lost: 0, surplus: 0, stale: 0, counted: 10_000 });

    await client.deleteFromTable({ id: TABLE, predicate: "id = 1" });
    const updates = [{ column: "text", expression: "'nothing'" }];
    await client.updateTable({ id: TABLE, predicate: "owner = 0", updates });
    await client.insertIntoTable({ id: TABLE }, streamOf([{ id: 3, owner: 1, revision: 0 }]));
    expect(await audit(client, ledgers)).toMatchObject({
      lost: 1,
      surplus: 1,
      stale: 5_000,
      counted: 10_000,
    });

    const over = new AbortController();
    const calls: Call[] = [];
    const onCall = (call: Call) => {
      calls.push(call);
      if (call.outcome !== "right") over.abort();
    };
    const options = { port, protocols: ["REST"], pauseMs: 0, onCall };
    await work(options, ledgers.slice(0, 1), over.signal);
    expect(calls.at(-1)).toMatchObject({ outcome: "wrong", reason: expect.stringContaining("instead of") });
  });
});
