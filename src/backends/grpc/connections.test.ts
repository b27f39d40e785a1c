import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "vitest";
import { fakeBackend, startServer } from "../../../test/support/server.ts";
import { answering, describeOn, failsWith, useUpstream } from "./fixture.ts";

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
