import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { test } from "vitest";
import { createCommitPorts } from "./commit-ports.ts";

test("a worker that leaves closes its ports, those that nobody has taken and those that came later, too", async () => {
  const [first, taken, later] = [new MessageChannel(), new MessageChannel(), new MessageChannel()];
  const ports = createCommitPorts([
    { slot: 0, port: first.port1 },
    { slot: 1, port: taken.port1 },
  ]);
  ports.take(1, () => {});
  ports.add({ slot: 1, port: later.port1 });
  const closed = Promise.all([first, taken, later].map(({ port2 }) => once(port2, "close")));
  ports.close();
  await closed;
});
