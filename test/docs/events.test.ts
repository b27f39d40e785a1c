import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { parseSecrets, signatureHeaders } from "../../src/events/send.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { CHANGE_TYPES, type ChangeEvent } from "../../src/namespace/change-event.ts";
import { eventOf, SECRET } from "../fixtures/events.ts";
import { createCaller } from "../support/caller.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { freePort } from "../support/free-port.ts";
import { NODE } from "../support/node-command.ts";
import { fakeBackend } from "../support/server.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/events.md"), "utf8");

/** Returns the blocks of code of a language in the page. */
function blocks(language: string): string[] {
  return [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, code = ""]) => code,
  );
}

test("the receiver of the page takes genuine events, once, and refuses forged, changed and old ones", async ({
  onTestFinished,
}) => {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const file = join(path, "receiver.mjs");
  await writeFile(file, blocks("js")[0] ?? "");
  const port = await freePort();
  const [command, ...flags] = NODE;
  const child = spawn(command, [...flags, file], { env: { PORT: String(port), WEBHOOK_SECRET: SECRET } });
  onTestFinished(() => void child.kill());
  let printed = "";
  child.stdout.on("data", (piece) => {
    printed += piece;
  });
  const secrets = parseSecrets(SECRET);
  const now = Math.floor(Date.now() / 1000);
  const post = async (body: string, headers: Readonly<Record<string, string>>) =>
    (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body, headers })).status;
  const event = eventOf("team$people");
  const body = JSON.stringify(event);
  const signed = (timestamp = now, by = secrets) => signatureHeaders({ id: event.id, timestamp, body }, by);

  await expect.poll(() => post(body, signed()).catch(() => 0)).toBe(204);
  assert.equal(await post(body, signed()), 204);
  const two = [...parseSecrets(`whsec_${Buffer.alloc(32).toString("base64")}`), ...secrets];
  assert.equal(await post(body, signed(now, two)), 204);
  assert.equal(await post(body, {}), 401);
  assert.equal(await post(body, signed(now, two.slice(0, 1))), 401);
  assert.equal(await post(body.replace("people", "people2"), signed()), 401);
  assert.equal(await post(body, { ...signed(), "webhook-id": "other" }), 401);
  assert.equal(await post(body, signed(now - 3_600)), 401);
  await expect.poll(() => printed).toBe("lance.gateway.table.created team$people\n");
});

test("the example of the page is an event as the gateway makes it", async () => {
  const shown = JSON.parse(blocks("json")[0] ?? "") as ChangeEvent;
  const events: ChangeEvent[] = [];
  const { method } = LanceNamespaceService;
  const client = createCaller({
    backend: fakeBackend({
      insertIntoTable: async () => create(method.insertIntoTable.output, { version: 7n }),
    }),
    limits: { maxUploadBytes: 1_000 },
    announcements: {
      sink: { announce: async (all) => void events.push(...all) },
      source: "/lance-gateway",
    },
  });
  await client.insertIntoTable({ id: ["team", "people"] }, new Uint8Array());
  const [made = assert.fail()] = JSON.parse(JSON.stringify(events)) as ChangeEvent[];
  const { id, time } = shown;
  const data = { ...made.data, request: shown.data.request };
  assert.deepEqual({ ...made, id, time, data }, shown);
  assert.match(blocks("http")[0] ?? "", new RegExp(`webhook-id: ${id}`));
});

test("the page has every type of event", () => {
  for (const type of CHANGE_TYPES) assert.ok(PAGE.includes(`\`${type}\``), type);
});
