import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it, type TestContext } from "vitest";
import { answering, describeOn, failsWith, useUpstream } from "../../../test/fixtures/upstreams/grpc.ts";
import { fakeBackend, startServer } from "../../../test/support/server.ts";
import { LanceError } from "../../namespace/errors.ts";

/** Relays connections to a port; `accepted` is the first of them, and `closed` its end. */
async function openRelay(t: TestContext, port: number, start?: Promise<void>) {
  const [accepted, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const relay = createServer(async (socket) => {
    socket.on("error", () => {}).on("close", () => closed.resolve());
    accepted.resolve();
    await start;
    const onward = connect(port, "127.0.0.1").on("error", () => socket.destroy());
    socket.pipe(onward).pipe(socket);
    t.onTestFinished(() => void socket.destroy());
  }).listen(0, "127.0.0.1");
  t.onTestFinished(() => void relay.close());
  await once(relay, "listening");
  const addresses = [`127.0.0.1:${(relay.address() as AddressInfo).port}`];
  return { addresses, accepted: accepted.promise, closed: closed.promise };
}

describe("connections of the gRPC backend", () => {
  const world = useUpstream();

  it("says that an upstream is away without its address, and finds it when it is back", async () => {
    const gone = await startServer(fakeBackend({ describeTable: answering }));
    const { port } = gone;
    const alone = await world.open({ addresses: [`127.0.0.1:${port}`] });
    assert.equal(await alone.ready(), true);
    await gone.close();
    await assert.rejects(describeOn(alone), failsWith("ServiceUnavailable", /^[^0-9]*$/));
    assert.equal(await alone.ready(), false);
    const back = await startServer(fakeBackend({ describeTable: answering }), { port });
    for (;;) {
      const answer = await describeOn(alone).catch(() => undefined);
      if (answer !== undefined) break;
      await sleep(50);
    }
    await alone.close();
    await back.close();
  });

  it("gives up a connection that is not made in time", async (t) => {
    // The server accepts connections and sends nothing, so that no HTTP/2 session starts.
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => sockets.add(socket)).listen(0, "127.0.0.1");
    t.onTestFinished(() => {
      silent.close();
      for (const socket of sockets) socket.destroy();
    });
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const slow = await world.open({ addresses: [`127.0.0.1:${port}`], connectMs: 100 });
    await assert.rejects(describeOn(slow), failsWith("ServiceUnavailable", /reached/));
    await slow.close();
  });

  it("takes no place for a call that its client cancels while the gateway connects", async (t) => {
    const server = await startServer(fakeBackend({ describeTable: answering }));
    t.onTestFinished(() => server.close());
    const go = Promise.withResolvers<void>();
    const { addresses, accepted } = await openRelay(t, server.port, go.promise);
    const narrow = await world.open({ addresses, maxCalls: 1, maxWaiting: 0 });
    const cancelled = new AbortController();
    const answer = describeOn(narrow, { signal: cancelled.signal });
    await accepted;
    cancelled.abort(new LanceError("Cancelled", "the client left"));
    go.resolve();
    await assert.rejects(answer, failsWith("Cancelled"));
    assert.equal((await describeOn(narrow)).table, "t");
    await narrow.close();
  });

  it("ends its connections when it is closed", async (t) => {
    const server = await startServer(fakeBackend({ describeTable: answering }));
    t.onTestFinished(() => server.close());
    const { addresses, closed } = await openRelay(t, server.port);
    const backend = await world.open({ addresses });
    await describeOn(backend);
    await backend.close();
    await closed;
  });

  it("answers the call that is in flight when it is closed", async () => {
    const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    world.upstream = {
      async describeTable() {
        arrived.resolve();
        await released.promise;
        return answering();
      },
    };
    const backend = await world.open();
    const answer = describeOn(backend);
    await arrived.promise;
    await backend.close();
    released.resolve();
    assert.equal((await answer).table, "t");
  });

  it("calls several addresses in turn, and leaves out those that are away", async () => {
    const counts = [0, 0];
    const servers = await Promise.all(
      counts.map((_, index) =>
        startServer(
          fakeBackend({
            describeTable: async () => {
              counts[index] = (counts[index] ?? 0) + 1;
              return answering();
            },
          }),
        ),
      ),
    );
    const several = await world.open({ addresses: servers.map(({ port }) => `127.0.0.1:${port}`) });
    for (let call = 0; call < 20; call += 1) await describeOn(several);
    assert.ok(
      counts.every((count) => count >= 5),
      `they got ${counts}`,
    );
    await servers[0]?.close();
    let failures = 0;
    for (let call = 0; call < 10; call += 1) {
      await describeOn(several).catch(() => {
        failures += 1;
      });
    }
    assert.ok(failures <= 1, `${failures} calls failed`);
    await several.close();
    await servers[1]?.close();
  });
});
