import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it } from "vitest";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import type { Backend } from "../../../src/namespace/lance-namespace.ts";
import { people, personStream } from "../../support/arrow.ts";
import { createCaller } from "../../support/caller.ts";
import type { LanceClient } from "../../support/client.ts";
import { refused } from "../../support/expect.ts";
import { BUCKET, type StoreServer, startS3 } from "../support/store-servers.ts";

const limits = { maxUploadBytes: 2 ** 26 };

/** Behaviour of a link to a storage: fair, or with a fault that storages and networks have now and then. */
type Weather = "fair" | "throttles" | "hangs" | "denies" | "expires" | "loses answers" | "hangs now and then";

/** While requests hang now and then, each of these does. */
const HUNG_EVERY = 40;

const ANSWERS: Partial<Record<Weather, readonly [status: number, code: string]>> = {
  throttles: [503, "SlowDown"],
  denies: [403, "AccessDenied"],
  expires: [400, "ExpiredToken"],
};

/** A link to a server. The signatures are of the link's address, which it passes on. */
async function openLink(port: number) {
  const link = { weather: "fair" as Weather, lost: 0, hung: 0, count: 0, port: 0, close: () => {} };
  const server = createServer((incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { weather } = link;
    const answer = ANSWERS[weather];
    if (weather === "hangs") return void incoming.resume();
    if (weather === "hangs now and then" && ++link.count % HUNG_EVERY === 0) {
      link.hung += 1;
      return void incoming.resume();
    }
    if (answer !== undefined) {
      incoming.resume();
      outgoing.writeHead(answer[0], { "content-type": "application/xml" });
      return void outgoing.end(`<Error><Code>${answer[1]}</Code><Message>weather</Message></Error>`);
    }
    const { method, url, headers } = incoming;
    const onward = request({ host: "127.0.0.1", port, method, path: url, headers }, (found) => {
      // Each second answer to a conditional write is lost, after the write.
      if (weather === "loses answers" && headers["if-none-match"] === "*" && ++link.lost % 2 === 1) {
        found.resume();
        return void found.on("end", () => outgoing.destroy());
      }
      outgoing.writeHead(found.statusCode ?? 502, found.rawHeaders);
      found.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    incoming.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  link.port = (server.address() as AddressInfo).port;
  link.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return link;
}

describe("a bucket behind a bad link", () => {
  let server: StoreServer;
  let link: Awaited<ReturnType<typeof openLink>>;
  let backend: Backend;
  let client: LanceClient;
  const id = ["ns", "t"];

  beforeAll(async () => {
    server = await startS3();
    link = await openLink(server.port);
    backend = await createDirectoryBackend({
      root: `s3://${BUCKET}/faults`,
      storageOptions: {
        ...server.options,
        aws_endpoint: `http://127.0.0.1:${link.port}`,
        timeout: "1s",
        client_max_retries: "1",
        client_retry_timeout: "2",
      },
      log: pino({ level: "silent" }),
    });
    client = createCaller({ backend, limits });
    await client.createNamespace({ id: ["ns"] });
    await client.createTable({ id }, personStream(people(3)));
  });
  afterAll(async () => {
    await backend?.close();
    link?.close();
    await server?.close();
  });

  for (const [weather, name] of [
    ["throttles", "Throttling"],
    ["hangs", "ServiceUnavailable"],
    ["denies", "ServiceUnavailable"],
    ["expires", "ServiceUnavailable"],
  ] as const) {
    it(`${weather}: every call has a clear error, and goes on when it is over`, async () => {
      const rows = (await client.countTableRows({ id })).count ?? 0n;
      link.weather = weather;
      const calls = {
        describe: () => client.describeTable({ id, loadDetailedMetadata: true }),
        list: () => client.listTables({ id: ["ns"] }),
        count: () => client.countTableRows({ id }),
        declare: () => client.declareTable({ id: ["ns", weather] }),
        insert: () => client.insertIntoTable({ id }, personStream(people(1))),
        tag: () => client.createTableTag({ id, tag: weather, version: 1n }),
      };
      try {
        for (const [what, call] of Object.entries(calls)) {
          await refused(name, call()).catch((error: Error) => assert.fail(`${what}: ${error.message}`));
        }
        assert.equal(await backend.ready(), false);
      } finally {
        link.weather = "fair";
      }
      assert.equal(await backend.ready(), true);
      assert.equal((await client.countTableRows({ id })).count, rows);
      assert.equal((await client.declareTable({ id: ["ns", weather] })).location?.startsWith("s3://"), true);
      await client.insertIntoTable({ id }, personStream(people(1)));
      assert.equal((await client.countTableRows({ id })).count, rows + 1n);
    });
  }

  // With the storage's usual limit of 30 s, waiting for the first hung request alone would take longer.
  it("hangs now and then: every call ends well all the same", { timeout: 25_000 }, async () => {
    const patient = await createDirectoryBackend({
      root: `s3://${BUCKET}/faults`,
      storageOptions: { ...server.options, aws_endpoint: `http://127.0.0.1:${link.port}` },
      log: pino({ level: "silent" }),
    });
    const caller = createCaller({ backend: patient, limits });
    link.weather = "hangs now and then";
    try {
      for (let i = 0; link.hung < 3; i++) {
        await caller.createNamespace({ id: ["ns", `hung${i}`] });
        const { namespaces } = await caller.listNamespaces({ id: ["ns"], limit: 1000 });
        assert.equal(namespaces.filter((name) => name.startsWith("hung")).length, i + 1);
      }
    } finally {
      link.weather = "fair";
      await patient.close();
    }
  });

  it("loses answers: what was written counts once, and is acknowledged", async () => {
    const rows = (await client.countTableRows({ id })).count ?? 0n;
    link.weather = "loses answers";
    try {
      for (let i = 0; i < 4; i++) await client.createTableTag({ id, tag: `lost${i}`, version: 1n });
      for (let i = 0; i < 4; i++) {
        await client.updateTableSchemaMetadata({ id, metadata: { [`key${i}`]: "x" } });
      }
      for (let i = 0; i < 4; i++) await client.declareTable({ id: ["ns", `lost${i}`] });
      for (let i = 0; i < 4; i++) await client.insertIntoTable({ id }, personStream(people(1)));
    } finally {
      link.weather = "fair";
    }
    assert.ok(link.lost > 8);
    assert.equal((await client.countTableRows({ id })).count, rows + 4n);
    const { tables } = await client.listTables({ id: ["ns"] });
    assert.equal(tables.filter((name) => name.startsWith("lost")).length, 4);
  });
});
