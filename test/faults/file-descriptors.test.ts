import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { sendHttp } from "../support/http.ts";
import { startProgramWithin } from "../support/program.ts";

/** Number of connections, above the program's number of file descriptors. */
const CONNECTIONS = 200;
const LIMIT = 64;

describe("a program without file descriptors", () => {
  test("survives, and answers again when some are free", { timeout: 60_000 }, async () => {
    const { path: root, remove } = await temporaryDirectory();
    const program = startProgramWithin(LIMIT, "serve", "--root", root, "--port", "0");
    const port = await program.listening();
    const sockets: Socket[] = [];
    for (let count = 0; count < CONNECTIONS; count++) {
      const socket = connect(port, "127.0.0.1");
      const done = Promise.race([once(socket, "connect"), once(socket, "close")]).catch(() => {});
      socket.on("error", () => {});
      await done;
      sockets.push(socket);
    }
    // The program loads further modules a second after its start. A load that fails leaves no trace to wait for.
    await Promise.race([program.ended, new Promise((resolve) => setTimeout(resolve, 1_500))]);
    assert.deepEqual([program.child.exitCode, program.child.signalCode], [null, null]);
    for (const socket of sockets) socket.destroy();
    for (const path of ["/healthz", "/metrics", "/v1/namespace/$/table/list"]) {
      for (;;) {
        const answer = await sendHttp(port, { method: "GET", path }).catch(() => undefined);
        if (answer?.status === 200) break;
      }
    }
    program.child.kill("SIGTERM");
    assert.equal((await program.ended).code, 0);
    await remove();
  });
});
