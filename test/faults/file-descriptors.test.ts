import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { sendHttp } from "../support/http.ts";
import { startProgramWithin } from "../support/program.ts";

/** Connections, more than the program has file descriptors for. */
const CONNECTIONS = 200;
const LIMIT = 64;

describe("a program without file descriptors", () => {
  test("lives, and answers again when there are some", { timeout: 60_000 }, async () => {
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
    // What is loaded late, a second after the start, finds none.
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
