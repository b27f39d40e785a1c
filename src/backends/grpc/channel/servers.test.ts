import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { create, type MessageShape } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, it } from "vitest";
import { letLookupsPass } from "../../../../test/fixtures/upstreams/lookup.ts";
import { beginCall } from "../../../../test/support/caller.ts";
import { fakeBackend, startServer } from "../../../../test/support/server.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../../gen/lance/namespace/v1/table_pb.ts";
import type { LanceNamespace } from "../../../namespace/lance-namespace.ts";
import { createGrpcBackend } from "../index.ts";
import { hostOf } from "./channels.ts";

const log = pino({ level: "silent" });
const { describeTable } = LanceNamespaceService.method;

describe("hostOf", () => {
  const cases: Readonly<Record<string, ReturnType<typeof hostOf>>> = {
    "catalog.internal:2333": { host: "catalog.internal", port: "2333" },
    "dns:///catalog:2333": { host: "catalog", port: "2333" },
    "dns:catalog": { host: "catalog", port: "443" },
    "10.0.0.1:2333": undefined,
    "[::1]:2333": undefined,
    "ipv4:10.0.0.1:2333": undefined,
    "unix:/run/catalog.sock": undefined,
    "unix:catalog.sock": undefined,
    "dns://10.0.0.53/catalog:2333": undefined,
  };
  for (const [address, expected] of Object.entries(cases)) {
    it(`reads ${address}`, () => assert.deepEqual(hostOf(address), expected));
  }
});

/** Starts a server that names itself in answers, and holds calls of the table `held` until they are released. */
async function startPeer(host: string, port = 0) {
  const gate = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  const peer = { calls: 0, release: gate.resolve, arrived: arrived.promise };
  const backend = fakeBackend({
    async describeTable(_, { id }) {
      peer.calls += 1;
      if (id[0] === "held") {
        arrived.resolve();
        await gate.promise;
      }
      return create(DescribeTableResponseSchema, { table: host });
    },
  });
  const server = await startServer(backend, { host, port });
  return Object.assign(peer, server);
}

describe("the servers of a name", () => {
  it("are called in turn, follow what is found, and keep the calls that they have", async (t) => {
    const one = await startPeer("127.0.0.1");
    const { port } = one;
    const two = await startPeer("127.0.0.2", port);
    const three = await startPeer("127.0.0.3", port);
    let found = ["127.0.0.1", "127.0.0.2"];
    const backend = await createGrpcBackend({
      addresses: [`dns:///catalog.test:${port}`],
      resolveHost: async () => found.map((address) => ({ address, family: 4 })),
      log,
    });
    t.onTestFinished(async () => {
      await backend.close();
      for (const peer of [one, two, three]) await peer.close();
    });
    const ask = async (id: string): Promise<MessageShape<typeof describeTable.output>> =>
      (backend.operations as LanceNamespace).describeTable(
        create(describeTable.input, { id: [id] }),
        beginCall(describeTable),
      );
    // By then the name has been looked up.
    await new Promise(setImmediate);
    for (let turn = 0; turn < 10; turn += 1) await ask("t");
    assert.deepEqual([one.calls, two.calls], [5, 5]);

    const held = ask("held");
    const holder = await Promise.race([one, two].map((peer) => peer.arrived.then(() => peer)));
    const gone = holder === one ? two : one;
    found = ["127.0.0.3", "127.0.0.4"];
    letLookupsPass(t);
    await gone.close();
    while (three.calls === 0) await ask("t");
    holder.release();
    assert.equal((await held).table, holder === one ? "127.0.0.1" : "127.0.0.2");
  });

  it("that are gone while the gateway connects to them leave their calls to others", async (t) => {
    const mute = createServer();
    mute.listen(0, "127.0.0.1");
    await once(mute, "listening");
    const { port } = mute.address() as AddressInfo;
    const two = await startPeer("127.0.0.2", port);
    const three = await startPeer("127.0.0.3", port);
    // The first one accepts connections and says nothing, and the last one refuses them.
    let found = ["127.0.0.1", "127.0.0.2", "127.0.0.4"];
    const backend = await createGrpcBackend({
      addresses: [`dns:///catalog.test:${port}`],
      resolveHost: async () => found.map((address) => ({ address, family: 4 })),
      connectMs: 60_000,
      log,
    });
    t.onTestFinished(async () => {
      await backend.close();
      mute.close();
      for (const peer of [two, three]) await peer.close();
    });
    const ask = async () => {
      const request = create(describeTable.input, { id: ["t"] });
      return (backend.operations as LanceNamespace).describeTable(request, beginCall(describeTable));
    };
    await new Promise(setImmediate);
    found = ["127.0.0.2", "127.0.0.3"];
    letLookupsPass(t);
    const answers = await Promise.all([ask(), ask(), ask()]);
    for (const { table } of answers) assert.match(String(table), /^127\.0\.0\.[23]$/);
  });
});
