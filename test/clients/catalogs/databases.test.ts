import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "@lancedb/lancedb";
import { pino } from "pino";
import { describe, it } from "vitest";
import { drawKey } from "../../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../../src/auth/authenticator.ts";
import { openPolicyFolder } from "../../../src/auth/cedar/policy-folder.ts";
import { createGlueBackend } from "../../../src/backends/catalogs/glue/index.ts";
import { createPolarisBackend } from "../../../src/backends/catalogs/iceberg/index.ts";
import { createComposedBackend } from "../../../src/backends/composed/index.ts";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import type { FlightData, FlightInfo } from "../../../src/gen/arrow/flight/protocol/Flight_pb.ts";
import type { Backend } from "../../../src/namespace/lance-namespace.ts";
import { people, personStream, rowsOf } from "../../support/arrow.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import { temporaryDirectory } from "../../support/directory.ts";
import { refused } from "../../support/expect.ts";
import { connectFlight, fromFlightData, pathTo } from "../../support/flight.ts";
import { createGrpcClient } from "../../support/grpc-client.ts";
import { createRestClient } from "../../support/rest-client.ts";
import { serveDatabases } from "../../support/serve-databases.ts";
import { startGlueAccount } from "../support/glue.ts";

const POLICIES = `
permit (principal == User::"api-key:owner", action, resource);
permit (principal == User::"api-key:analyst", action in [Action::"list", Action::"describe", Action::"read"], resource);
forbid (principal == User::"api-key:analyst", action, resource in Database::"polaris");
`;

const log = pino({ level: "silent" });
const LIMITS = { maxUploadBytes: 2 ** 20 };
const CALLERS = ["owner", "analyst"] as const;

/** The databases, whose namespace `sales` has the table `people` with a number of rows. */
const ROWS = { glue: 2, polaris: 3, lake: 4 } as const;

describe("a gateway whose databases are several catalogs", () => {
  it("shows one tree with one login, one set of policies and one audit log over gRPC, REST, Flight and LanceDB's client", async ({
    onTestFinished,
  }) => {
    const { path, remove } = await temporaryDirectory();
    onTestFinished(remove);
    const [account, server] = [await startGlueAccount(), await startIcebergServer("polaris")];
    onTestFinished(account.close);
    onTestFinished(server.close);
    const placeOf = (name: string) => ({ tableRoot: join(path, name) });
    const withRows = (catalog: Backend) => createComposedBackend(catalog, { log, allowedLocations: [path] });
    const { endpoint, region, credentials } = account;
    const { url: uri, warehouse } = server;
    const backends: Readonly<Record<keyof typeof ROWS, Backend>> = {
      glue: withRows(
        await createGlueBackend({ endpoint, region, credentials, resilience: { log }, ...placeOf("glue") }),
      ),
      polaris: withRows(await createPolarisBackend({ uri, warehouse, log, ...placeOf("polaris") })),
      lake: await createDirectoryBackend({ root: join(path, "lake"), log }),
    };
    const databases = new Map(
      Object.entries(backends).map(([name, backend]) => [name, { backend, limits: LIMITS }]),
    );
    const keys = new Map(CALLERS.map((name) => [name, drawKey()]));
    const authenticator = createAuthenticator(
      [
        proveByKeys({
          find(text) {
            const [name, key] = [...keys].find(([, each]) => each.text === text) ?? [];
            if (name === undefined || key === undefined) return "unknown";
            return { hash: "", created: "2026-01-01T00:00:00.000Z", id: key.id, name, role: "none" };
          },
          close() {},
        }),
      ],
      { failed: () => 0 },
    );
    const directory = join(path, "policies");
    await mkdir(directory);
    await writeFile(join(directory, "all.cedar"), POLICIES);
    const authorizer = await openPolicyFolder({ directory, log });
    const lines: string[] = [];
    const trail = {
      requireWritable() {},
      write: async (line: string) => void lines.push(line),
      close: async () => {},
    };
    const gateway = await serveDatabases(
      databases,
      { routes: [{ by: "namespace" }], pathPrefix: undefined, fallback: undefined },
      { ...LIMITS, host: "127.0.0.1", port: 0, maxMessageBytes: 2 ** 20, drainSeconds: 0 },
      { log, authenticator, authorizer, trail },
    );
    onTestFinished(async () => void (await gateway.close()));

    const { port } = gateway.address;
    const headersOf = (name: (typeof CALLERS)[number]) => ({ "x-api-key": keys.get(name)?.text ?? "" });
    const owner = createGrpcClient(port, headersOf("owner"));
    onTestFinished(() => owner.close());
    for (const [name, count] of Object.entries(ROWS)) {
      await owner.client.createNamespace({ id: [name, "sales"] });
      await owner.client.createTable({ id: [name, "sales", "people"] }, personStream(people(count)));
    }
    for (const open of [createGrpcClient, createRestClient]) {
      const analyst = open(port, headersOf("analyst"));
      onTestFinished(() => analyst.close());
      const { client } = analyst;
      for (const [name, count] of Object.entries(ROWS)) {
        const id = [name, "sales", "people"];
        const reading = client.queryTable({ id }).then(({ bytes }) => rowsOf(bytes).length);
        if (name === "polaris") await refused("PermissionDenied", reading);
        else assert.equal(await reading, count);
        await refused("PermissionDenied", client.insertIntoTable({ id }, personStream(people(1))));
      }
      const { tables } = await client.listTables({ id: ["glue", "sales"] });
      assert.deepEqual(tables, ["people"]);
    }
    const flight = connectFlight(port, headersOf("analyst"));
    onTestFinished(() => flight.close());
    const read = async (...names: string[]) => {
      const [info] = await flight.call<FlightInfo>("getFlightInfo", pathTo(...names));
      const data = await flight.call<FlightData>("doGet", info?.endpoint[0]?.ticket as object);
      return rowsOf(fromFlightData(data)).length;
    };
    assert.equal(await read("glue", "sales", "people"), ROWS.glue);
    assert.equal(await read("lake", "sales", "people"), ROWS.lake);
    await assert.rejects(read("polaris", "sales", "people"), /PERMISSION_DENIED/);
    const apiKey = keys.get("analyst")?.text ?? "";
    const lancedb = await connect("db://all", { apiKey, hostOverride: `http://127.0.0.1:${port}` });
    for (const [name, count] of Object.entries(ROWS)) {
      const table = lancedb.openTable("people", [name, "sales"]);
      if (name === "polaris") await assert.rejects(table, /denied|not found|403|404/i);
      else assert.equal(await (await table).countRows(), count);
    }
    const audited = lines.map((line) => JSON.parse(line));
    for (const name of Object.keys(ROWS))
      assert.ok(
        audited.some((each) => JSON.stringify(each).includes(name)),
        name,
      );
  });
});
