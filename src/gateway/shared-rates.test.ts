import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { onTestFinished, test, vi } from "vitest";
import type { TokenGrant } from "../pipeline/limits/shared-buckets.ts";
import { connectBuckets } from "./shared-rates.ts";

const REQUEST = { bucket: "b", rate: { perSecond: 1, burst: 1 }, wanted: 1, returned: 0 };

const GRANT = "*3\r\n:1\r\n:0\r\n:0\r\n";

/** Starts a server whose connections answer scripts, of which several may arrive at once, as `answer` says. */
async function openServer(
  answer: (socket: Socket, count: number) => void,
  silenceMs = 20,
  greet = (_: Socket) => {},
) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    greet(socket);
    socket.on("data", (data) => {
      const count = data.toString("latin1").split("EVALSHA").length - 1;
      if (count > 0) answer(socket, count);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const buckets = await connectBuckets({ url, prefix: "test", silenceMs });
  onTestFinished(() => {
    buckets.close();
    server.close();
  });
  return buckets;
}

test("replaces a connection on which the server answers nothing, and gives its commands up", async () => {
  const connections = new Set<Socket>();
  const buckets = await openServer((socket, count) => {
    connections.add(socket);
    if (connections.size > 1) socket.write(GRANT.repeat(count));
  });
  const first = assert.rejects(buckets.take(REQUEST));
  const grants: TokenGrant[] = [];
  await vi.waitFor(
    () => {
      buckets.take(REQUEST).then(
        (grant) => grants.push(grant),
        () => {},
      );
      assert.ok(grants.length > 0);
    },
    { timeout: 60_000 },
  );
  await first;
  assert.deepEqual(grants[0], { granted: 1, waitMs: 0, fullMs: 0 });
  const [silent] = connections;
  if (silent?.closed === false) await once(silent, "close");
});

const NO_GRANTS = [
  "+OK",
  "*-1",
  ":1",
  "*3\r\n+a\r\n+b\r\n+c",
  "*2\r\n:1\r\n:1",
  "*3\r\n:1\r\n:-1\r\n:0",
  "-ERR no",
];

for (const answer of NO_GRANTS)
  test(`takes no grant from the answer ${JSON.stringify(answer)}`, async () => {
    const buckets = await openServer((socket) => socket.write(`${answer}\r\n`));
    await assert.rejects(buckets.take(REQUEST), Error);
  });

test("ends a connection whose answer has no end, while nobody else calls", async () => {
  const closed = Promise.withResolvers<void>();
  const buckets = await openServer((socket) => {
    socket.on("close", () => closed.resolve());
    socket.write("$10000000000\r\n");
    const timer = setInterval(() => socket.write("x"), 1);
    socket.on("close", () => clearInterval(timer));
  });
  await assert.rejects(buckets.take(REQUEST));
  await closed.promise;
});

test("ends each connection whose answer is too large, however fast it comes", async () => {
  const bytes = Buffer.alloc(2 ** 20, "x");
  let cut = 0;
  const buckets = await openServer((socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(bytes));
    };
    socket.on("close", () => {
      cut += 1;
    });
    socket.on("drain", more).write("$10000000000\r\n");
    more();
  }, 3_600_000);
  await vi.waitFor(
    async () => {
      await assert.rejects(buckets.take(REQUEST));
      assert.ok(cut >= 2);
    },
    { timeout: 60_000 },
  );
});

test("keeps the connection after one that was ended because it sent too much", async () => {
  const connections: Socket[] = [];
  const answer = (socket: Socket, count: number) => void socket.write(GRANT.repeat(count));
  const buckets = await openServer(answer, 3_600_000, (socket) => {
    connections.push(socket);
    if (connections.length === 1) socket.write(`$10000000000\r\n${"x".repeat(2 ** 21)}`);
  });
  await vi.waitFor(() => assert.equal(connections.length, 2), { timeout: 60_000 });
  await vi.waitFor(() => buckets.take(REQUEST), { timeout: 60_000 });
  await buckets.take(REQUEST);
  assert.equal(connections.length, 2);
});
