import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { access, chmod, chown, cp, mkdir, readdir, rename, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { type TestContext, test } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import type { ErrorName } from "../../src/namespace/errors.ts";
import { cut, people, personStream, wideStream } from "../support/arrow.ts";
import type { LanceClient } from "../support/client.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { refused } from "../support/expect.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { sendHttp } from "../support/http.ts";
import { startProgram, startProgramAs } from "../support/program.ts";
import { startServer } from "../support/server.ts";

/** Errors that a client gets while the storage fails; Internal is not among them. */
const UNAVAILABLE: readonly ErrorName[] = ["ServiceUnavailable", "Unsupported"];

/** A file system of 12 MiB in memory. */
const SMALL = ["-t", "tmpfs", "-o", "size=12m", "tmpfs"];

interface Site {
  readonly base: string;
  readonly client: LanceClient;
  /** Ends the server and starts another one. */
  restart(): Promise<LanceClient>;
}

/** Opens a catalog in a directory, with a server in this process, a namespace and a table of three rows. */
async function openSite(t: TestContext, prepare: (root: string) => void = () => {}): Promise<Site> {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const root = join(path, "root");
  await mkdir(root);
  prepare(root);
  async function start(): Promise<LanceClient> {
    const backend = await createDirectoryBackend({
      root,
      log: pino({ level: "silent" }),
      diskReserveBytes: 1024 ** 2,
    });
    const server = await startServer(backend);
    const { client, close } = createGrpcClient(server.port);
    const closed = Promise.withResolvers<void>();
    end = () => {
      close();
      server.close().then(closed.resolve, closed.reject);
      end = () => closed.promise;
      return closed.promise;
    };
    const endThis = end;
    t.onTestFinished(() => (end === endThis ? endThis() : closed.promise));
    return client;
  }
  let end = async () => {};
  const client = await start();
  await client.createNamespace({ id: ["ns"] });
  await client.createTable({ id: ["ns", "kept"] }, personStream(people(3)));
  const restart = async () => {
    await end();
    return start();
  };
  return { base: join(root, "data"), client, restart };
}

/** A user of the system without any files. */
const NOBODY = 65_534;

let names = 0;

/** Checks that the old table is readable, and that the catalog and a table can be changed. */
async function assertWorks(client: LanceClient): Promise<void> {
  const id = ["ns", `t${names++}`];
  assert.equal((await client.countTableRows({ id: ["ns", "kept"] })).count, 3n);
  await client.createTable({ id }, personStream(people(1)));
  await client.insertIntoTable({ id }, personStream(people(1)));
  assert.equal((await client.countTableRows({ id })).count, 2n);
  await client.dropTable({ id });
  assert.deepEqual((await client.listTables({ id: ["ns"] })).tables, ["kept"]);
}

/** Checks that every kind of change is refused. */
async function assertRefusesChanges(
  client: LanceClient,
  errors: readonly ErrorName[],
  { drops = true } = {},
): Promise<void> {
  const calls = [
    client.declareTable({ id: ["ns", "declared"] }),
    client.createNamespace({ id: ["other"] }),
    client.createTable({ id: ["ns", "new"] }, personStream(people(2))),
    client.insertIntoTable({ id: ["ns", "kept"] }, personStream(people(2))),
    client.renameTable({ id: ["ns", "kept"], newTableName: "renamed" }),
    ...(drops ? [client.dropTable({ id: ["ns", "kept"] })] : []),
  ];
  await Promise.allSettled(calls);
  for (const call of calls) await refused(errors, call);
}

/** Mounts a small file system at a path until the test ends. */
function mountSmall(t: TestContext, path: string): void {
  execFileSync("mount", [...SMALL, path], { stdio: "ignore" });
  t.onTestFinished(() => void execFileSync("umount", ["--lazy", path]));
}

/** Whether this process has the right to mount a file system. */
function mayMount(): boolean {
  const path = mkdtempSync(join(tmpdir(), "lance-gateway-mount-"));
  try {
    execFileSync("mount", [...SMALL, path], { stdio: "ignore" });
    execFileSync("umount", [path]);
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(path);
  }
}

const MAY_MOUNT = mayMount();

test.skipIf(!MAY_MOUNT)(
  "a full disk refuses new data, serves reads and drops, and works again once there is space",
  async (t) => {
    const { base, client } = await openSite(t, (root) => mountSmall(t, root));
    while ((await readdir(join(base, ".reserve")).catch(() => [])).length < 4) await sleep(5);
    const ballast = join(base, "..", "ballast");
    await refused(
      UNAVAILABLE,
      client.createTable({ id: ["ns", "large"] }, cut(wideStream(32 * 2 ** 20), 2 ** 20)),
    );
    await assertWorks(client);
    for (const name of ["doomed", "inner"])
      await client.createTable({ id: ["ns", name] }, personStream(people(3)));
    await client.createNamespace({ id: ["empty"] });
    await writeFile(ballast, Buffer.alloc(16 * 2 ** 20)).catch(() => {});
    await assertRefusesChanges(client, UNAVAILABLE, { drops: false });
    assert.equal((await client.countTableRows({ id: ["ns", "kept"] })).count, 3n, "reads go on");
    assert.deepEqual((await client.listTables({ id: ["ns"] })).tables, ["doomed", "inner", "kept"]);
    // Drops free space.
    await client.dropTable({ id: ["ns", "doomed"] });
    await client.dropNamespace({ id: ["empty"] });
    await client.dropTable({ id: ["ns", "inner"] });
    assert.deepEqual((await client.listTables({ id: ["ns"] })).tables, ["kept"]);
    await unlink(ballast);
    await assertWorks(client);
  },
);

test.skipIf(!MAY_MOUNT)(
  "a file system that becomes read-only refuses changes and serves reads until it is writable again",
  async (t) => {
    let mounted = "";
    const { client } = await openSite(t, (root) => {
      mountSmall(t, root);
      mounted = root;
    });
    execFileSync("mount", ["-o", "remount,ro", mounted]);
    await assertRefusesChanges(client, UNAVAILABLE);
    assert.equal((await client.countTableRows({ id: ["ns", "kept"] })).count, 3n, "reads go on");
    execFileSync("mount", ["-o", "remount,rw", mounted]);
    await assertWorks(client);
  },
);

test("a server refuses calls while its manifest is deleted, and works once it is back", async (t) => {
  const { base, client } = await openSite(t);
  const manifest = join(base, "__manifest");
  const aside = join(base, "..", "aside");
  await cp(manifest, aside, { recursive: true });
  await rm(manifest, { recursive: true });
  await refused("ServiceUnavailable", client.describeTable({ id: ["ns", "kept"] }));
  await refused("ServiceUnavailable", client.listTables({ id: ["ns"] }));
  await assertRefusesChanges(client, ["ServiceUnavailable"]);
  await assert.rejects(access(manifest), { code: "ENOENT" }, "nothing is begun anew");
  await rename(aside, manifest);
  await assertWorks(client);
});

test("a restart begins a new manifest after its deletion", async (t) => {
  const { base, client, restart } = await openSite(t);
  await rm(join(base, "__manifest"), { recursive: true });
  await refused("ServiceUnavailable", client.createNamespace({ id: ["anew"] }));
  const after = await restart();
  await after.createNamespace({ id: ["anew"] });
  assert.deepEqual((await after.listNamespaces({})).namespaces, ["anew"]);
  await after.declareTable({ id: ["anew", "t"] });
  assert.deepEqual((await after.listTables({ id: ["anew"] })).tables, ["t"]);
});

test("a server refuses calls on a backup that is older than its state, until a restart", async (t) => {
  const { base, client, restart } = await openSite(t);
  const manifest = join(base, "__manifest");
  const backup = join(base, "..", "backup");
  await cp(manifest, backup, { recursive: true });
  for (const name of ["a", "b"]) await client.createNamespace({ id: [name] });
  await rm(manifest, { recursive: true });
  await cp(backup, manifest, { recursive: true });
  await refused("ServiceUnavailable", client.listNamespaces({}));
  await assertRefusesChanges(client, ["ServiceUnavailable"]);
  const after = await restart();
  assert.deepEqual((await after.listNamespaces({})).namespaces, ["ns"]);
  await assertWorks(after);
});

test("a program is not ready while the manifest is away, and logs the reason once", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const root = join(path, "root");
  const program = startProgram("serve", "--root", root, "--port", "0", "--log-level", "info");
  t.onTestFinished(() => void program.child.kill("SIGKILL"));
  const port = await program.listening();
  const { client, close } = createGrpcClient(port);
  t.onTestFinished(close);
  await client.createNamespace({ id: ["ns"] });
  const [manifest, aside] = [join(root, "data", "__manifest"), join(root, "aside")];
  const becomes = async (status: number) => {
    while ((await sendHttp(port, { method: "GET", path: "/readyz" })).status !== status) await sleep(50);
  };
  await becomes(200);
  await rename(manifest, aside);
  await becomes(503);
  await refused("ServiceUnavailable", client.listNamespaces({}));
  await rename(aside, manifest);
  await becomes(200);
  assert.deepEqual((await client.listNamespaces({})).namespaces, ["ns"]);
  program.child.kill("SIGTERM");
  const { stdout, stderr } = await program.ended;
  const lines = `${stdout}${stderr}`.split("\n");
  for (const said of ["has lost versions that the server has seen; nothing", "the catalog is back"])
    assert.equal(lines.filter((line) => line.includes(said)).length, 1, said);
});

test("a server works again when its base directory comes back", async (t) => {
  const { base, client } = await openSite(t);
  await rename(base, `${base}-away`);
  const away: readonly ErrorName[] = ["ServiceUnavailable"];
  await refused(away, client.describeTable({ id: ["ns", "kept"] }));
  await refused(away, client.countTableRows({ id: ["ns", "kept"] }));
  await refused(away, client.declareTable({ id: ["ns", "declared"] }));
  await rm(base, { recursive: true, force: true });
  await rename(`${base}-away`, base);
  await assertWorks(client);
});

test("a server refuses calls on an unreadable version of the manifest, and works once it is gone", async (t) => {
  const { base, client } = await openSite(t);
  const versions = join(base, "__manifest", "_versions");
  const [newest = ""] = (await readdir(versions)).filter((name) => /^\d{20}\.manifest$/.test(name)).sort();
  const garbage = join(versions, `${String(BigInt(newest.slice(0, 20)) - 1n).padStart(20, "0")}.manifest`);
  for (const bytes of [Buffer.alloc(0), Buffer.from("garbage"), Buffer.alloc(4096, 0x5a)]) {
    await writeFile(garbage, bytes);
    await refused("ServiceUnavailable", client.describeTable({ id: ["ns", "kept"] }));
    await refused("ServiceUnavailable", client.declareTable({ id: ["ns", "declared"] }));
    await rm(garbage);
    assert.deepEqual((await client.listTables({ id: ["ns"] })).tables, ["kept"]);
  }
  await assertWorks(client);
});

test("a server refuses calls while it lacks a permission, and works once it has it again", async (t) => {
  if (process.getuid?.() !== 0) return t.skip("it takes the right to act as another user");
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  await chmod(path, 0o755);
  const [root, base] = [join(path, "root"), join(path, "root", "data")];
  await mkdir(base, { recursive: true });
  for (const directory of [root, base]) await chown(directory, NOBODY, NOBODY);
  const program = startProgramAs(NOBODY, "serve", "--root", root, "--port", "0", "--log-level", "silent");
  t.onTestFinished(() => void program.child.kill("SIGKILL"));
  const { client, close } = createGrpcClient(await program.listening());
  t.onTestFinished(close);
  await client.createNamespace({ id: ["ns"] });
  await client.createTable({ id: ["ns", "kept"] }, personStream(people(3)));
  await chmod(base, 0o000);
  await refused(UNAVAILABLE, client.listTables({ id: ["ns"] }));
  await refused(UNAVAILABLE, client.describeTable({ id: ["ns", "kept"] }));
  await assertRefusesChanges(client, UNAVAILABLE);
  await chmod(base, 0o700);
  await assertWorks(client);
});
