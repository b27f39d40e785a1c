import assert from "node:assert/strict";
import { access, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, test } from "vitest";
import { InsertMode } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { ESCAPES } from "../contract/registration.ts";
import { blobStream, people, personStream } from "../support/arrow.ts";
import type { LanceClient, ProtocolClient } from "../support/client.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { refused } from "../support/expect.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

describe("locations", () => {
  let server: DirectoryServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  let client: LanceClient;
  let outside: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    server = await startDirectoryServer();
    clients = createProtocolClients(server.port);
    client = (clients["gRPC"] as ProtocolClient).client;
    outside = await temporaryDirectory();
    await client.createNamespace({ id: ["ns"] });
    await client.createTable({ id: ["ns", "kept"] }, personStream(people(3)));
    await mkdir(join(outside.path, "precious.lance"));
    await writeFile(join(outside.path, "precious.lance", "file"), "precious");
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
    await outside.remove();
  });

  /** Checks that no request for a location has removed files outside the base or files of the catalog. */
  async function assertNothingLost(): Promise<void> {
    await access(join(outside.path, "precious.lance", "file"));
    assert.equal((await client.countTableRows({ id: ["ns", "kept"] })).count, 3n);
    assert.ok((await readdir(server.base)).includes("__manifest"));
  }

  test("a location that leads out of the catalog is refused on every wire", async () => {
    const more = [
      join(outside.path, "precious.lance"),
      `file://${join(outside.path, "precious.lance")}`,
      relative(server.base, join(outside.path, "precious.lance")),
      "*.lance",
    ];
    for (const [protocol, { client: wire }] of Object.entries(clients)) {
      for (const location of [...ESCAPES, ...more]) {
        const call = wire.registerTable({ id: ["ns", "escape"], location });
        await refused("InvalidInput", call).catch((error: Error) =>
          assert.fail(`${protocol} ${JSON.stringify(location)}: ${error.message}`),
        );
      }
    }
    await assertNothingLost();
  });

  test("a location is a path rather than a URL: escapes in it are literal", async () => {
    for (const location of ["%2e%2e", "%2e%2e%2fprecious.lance", "..%2fprecious.lance", "%2Fetc"]) {
      const id = ["ns", "encoded"];
      const registered = await client.registerTable({ id, location }).catch(() => undefined);
      if (registered !== undefined) await client.dropTable({ id });
      await assertNothingLost();
    }
  });

  test("a symbolic link out of the catalog is not followed", async () => {
    await symlink(join(outside.path, "precious.lance"), join(server.base, "link.lance"));
    await symlink(outside.path, join(server.base, "linked"));
    for (const location of ["link.lance", "linked/precious.lance"]) {
      const id = ["ns", "link"];
      const registered = await client.registerTable({ id, location }).then(
        () => true,
        () => false,
      );
      if (registered) await client.dropTable({ id }).catch(() => undefined);
      await assertNothingLost();
      assert.ok(!registered, `${location} was registered`);
    }
  });

  test("tables are directly in the base, whatever their names", async () => {
    for (const id of [["plain"], ["ns", "a.b"], ["ns", ".hidden"], ["ns", "..x"]]) {
      await client.declareTable({ id });
      const { location = "" } = await client.describeTable({ id });
      const path = location.includes("://") ? fileURLToPath(location) : location;
      assert.ok((await readdir(server.base)).includes(basename(path)), location);
    }
  });

  test("a row cannot make the catalog read a foreign file", async () => {
    const uri = `file://${join(outside.path, "precious.lance", "file")}`;
    for (const reference of [uri, join(outside.path, "precious.lance", "file"), `file://${server.base}/x`]) {
      const id = ["ns", "blobs"];
      for (const isStored of [false, true]) {
        const call = client.createTable({ id }, blobStream(reference, isStored));
        await refused("InvalidInput", call);
        await refused("TableNotFound", client.countTableRows({ id }));
      }
      await client.declareTable({ id });
      const merge = { id, on: ["blob"], whenNotMatchedInsertAll: true };
      await refused("InvalidInput", client.mergeInsertIntoTable(merge, blobStream(reference, true)));
      await client.insertIntoTable({ id }, personStream([]));
      const overwrite = { id, mode: InsertMode.OVERWRITE };
      await refused("InvalidInput", client.insertIntoTable(overwrite, blobStream(reference, true)));
      await client.dropTable({ id });
    }
    await assertNothingLost();
  });

  test("the directory of the manifest cannot be used as a table", async () => {
    await refused("TableNotFound", client.describeTable({ id: ["__manifest"] }));
    assert.ok(!(await client.listTables()).tables.includes("__manifest"));
    const claims = [
      client.declareTable({ id: ["__manifest"] }),
      client.createTable({ id: ["__manifest"] }, personStream([])),
    ];
    await Promise.allSettled(claims);
    await client.dropTable({ id: ["__manifest"] }).catch(() => undefined);
    await assertNothingLost();
  });
});
