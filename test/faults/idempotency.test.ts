import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type LanceClient } from "../support/client.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgram } from "../support/program.ts";
import { PROTOCOLS } from "../support/protocols.ts";
import { startServer, type TestServer } from "../support/server.ts";

const log = pino({ level: "silent" });
const ROWS = personStream(people(5));
let root: string;
let remove: () => Promise<void>;
let servers: readonly TestServer[];

const serve = async () => startServer(await createDirectoryBackend({ root, log }));

/** Calls with a key on a protocol. */
async function callWith<T>(
  port: number,
  protocol: string,
  key: string | undefined,
  call: (client: LanceClient) => Promise<T>,
): Promise<T> {
  const open = PROTOCOLS[protocol] as NonNullable<(typeof PROTOCOLS)[string]>;
  const { client, close } = open(port, key === undefined ? {} : { "idempotency-key": key });
  return call(client).finally(close);
}

async function failure(call: Promise<unknown>): Promise<CallError> {
  const error = await call.catch((thrown: unknown) => thrown);
  assert.ok(error instanceof CallError, String(error));
  return error;
}

describe("idempotency keys of two gateways on a directory", () => {
  beforeAll(async () => {
    ({ path: root, remove } = await temporaryDirectory());
    servers = [await serve(), await serve()];
    await callWith(servers[0]?.port ?? 0, "gRPC", undefined, (client) =>
      client.createTable({ id: ["people"] }, ROWS),
    );
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
    await remove();
  });

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: a call that is sent to both is executed once and answered twice`, async () => {
      const [first, second] = servers.map(({ port }) => port) as [number, number];
      const key = randomUUID();
      const insert = (port: number, rows = ROWS) =>
        callWith(port, protocol, key, (client) => client.insertIntoTable({ id: ["people"] }, rows));
      const count = () =>
        callWith(first, protocol, undefined, (client) => client.countTableRows({ id: ["people"] }));
      const before = (await count()).count;
      const answer = await insert(first);
      const again = await insert(second);
      assert.equal(again.version, answer.version);
      assert.equal((await count()).count, before + 5n);
      const { code, httpStatus, grpcCode } = (await failure(insert(second, personStream(people(4))))).failure;
      assert.deepEqual([code, httpStatus ?? grpcCode], [13, protocol === "REST" ? 422 : 3]);

      const name = `by-${protocol.replaceAll(/\W/g, "-")}`;
      const make = (port: number, on: string) =>
        callWith(port, on, `${key}-2`, (client) =>
          client.createNamespace({ id: [name], properties: { a: "b" } }),
        );
      await make(first, protocol);
      for (const on of ["REST", "gRPC"]) assert.deepEqual((await make(second, on)).properties, { a: "b" });
    });
  }

  test("calls with a key at the same time are executed once", async () => {
    const key = randomUUID();
    const create = (port: number) =>
      callWith(port, "gRPC", key, (client) => client.insertIntoTable({ id: ["people"] }, ROWS));
    const count = () =>
      callWith(servers[0]?.port ?? 0, "gRPC", undefined, (client) =>
        client.countTableRows({ id: ["people"] }),
      );
    const before = (await count()).count;
    const calls = [...servers, ...servers, ...servers].map(({ port }) => create(port));
    const results = await Promise.allSettled(calls);
    for (const result of results) {
      if (result.status === "rejected") assert.equal((result.reason as CallError).failure.code, 14);
    }
    assert.ok(results.some(({ status }) => status === "fulfilled"));
    assert.equal((await count()).count, before + 5n);
  });
});

test("a call is not executed again when its process was killed before the answer was kept", async ({
  onTestFinished,
}) => {
  const { path: folder, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const plugin = join(folder, "kill.mjs");
  await writeFile(
    plugin,
    `export default {
      interceptors: [async (call, request, next) => {
        const answer = await next(call, request);
        if (call.headers["idempotency-key"]) process.kill(process.pid, "SIGKILL");
        return answer;
      }],
    };`,
  );
  const directory = join(folder, "root");
  const program = startProgram("serve", "--port", "0", "--root", directory, "--plugin", plugin);
  const port = await program.listening();
  const insert = (at: number) =>
    callWith(at, "REST", "k", (client) => client.insertIntoTable({ id: ["people"] }, ROWS));
  await callWith(port, "REST", undefined, (client) => client.createTable({ id: ["people"] }, ROWS));
  await assert.rejects(insert(port));
  assert.equal((await program.ended).signal, "SIGKILL");

  const server = await startServer(await createDirectoryBackend({ root: directory, log }));
  onTestFinished(() => server.close());
  const error = await failure(insert(server.port));
  assert.equal(error.failure.httpStatus, 409);
  assert.match(error.message, /without a known outcome/);
  const { count } = await callWith(server.port, "REST", undefined, (client) =>
    client.countTableRows({ id: ["people"] }),
  );
  assert.equal(count, 10n);
});
