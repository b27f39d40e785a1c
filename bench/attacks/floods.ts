import { constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack } from "./attack.ts";
import { begin, openRaw, openSession } from "./connections.ts";

const DESCRIBE = "/lance.namespace.v1.LanceNamespaceService/DescribeTable";

/** Resets calls as soon as they are made, as fast as possible, and reopens lost connections. */
export const resets: Attack = {
  title: "a flood of resets",
  isFlood: true,
  async launch({ port }) {
    const flood = async () => {
      const session = await openSession(port);
      while (!session.destroyed && !session.closed) {
        for (let count = 0; count < 100 && !session.destroyed && !session.closed; count += 1) {
          begin(session, DESCRIBE, { "content-type": "application/grpc" }).close(constants.NGHTTP2_CANCEL);
        }
        await sleep(5);
      }
    };
    void (async () => {
      for (;;) await flood().catch(() => {});
    })();
  },
};

/** Opens connections that send nothing, or never complete a request. */
export const idleConnections: Attack = {
  title: "6,000 connections that make no request",
  isFlood: true,
  async launch({ port }) {
    const kinds = [
      () => openSession(port),
      async () => (await openRaw(port)).write("POST /v1/table/t/describe HTTP/1.1\r\nhost: localhost\r\n"),
      () => openRaw(port),
    ];
    for (let count = 0; count < 6_000; count += 1) await kinds[count % kinds.length]?.().catch(() => {});
  },
};
