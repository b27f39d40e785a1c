import { once } from "node:events";
import type { Attack } from "./attack.ts";
import { begin, head, openRaw, openSession, prefix } from "./connections.ts";
import { noiseStream } from "./rows.ts";

const MIB = 1024 * 1024;
const SERVICE = "/lance.namespace.v1.LanceNamespaceService";

/** Inserts that stop in the middle. */
export const stalledUploads: Attack = {
  title: "200 inserts that stop after 6 MiB, REST",
  async launch({ port, table }) {
    const body = noiseStream(8 * MIB);
    const headers = { "content-type": "application/vnd.apache.arrow.stream", "content-length": body.length };
    for (let count = 0; count < 200; count += 1) {
      const socket = await openRaw(port);
      socket.resume().write(head(`/v1/table/${table}/insert`, headers));
      socket.write(body.subarray(0, 6 * MIB));
    }
  },
};

/** Bodies of JSON that stop before their end. */
export const stalledJson: Attack = {
  title: "200 bodies of JSON that stop after 15 MiB, REST",
  async launch({ port }) {
    const body = Buffer.alloc(15 * MIB, " ");
    const headers = { "content-type": "application/json", "content-length": body.length + 1 };
    for (let count = 0; count < 200; count += 1) {
      const socket = await openRaw(port);
      socket.resume().write(head(`/v1/namespace/n${count}/create`, headers));
      if (!socket.write(body))
        await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => {});
    }
  },
};

/** Sends messages that never end, all on one connection. */
function unfinishedMessages(protocol: string, contentType: string): Attack {
  return {
    title: `60 messages that stop after 15 MiB on one connection, ${protocol}`,
    async launch({ port }) {
      const session = await openSession(port);
      const body = Buffer.alloc(15 * MIB);
      for (let count = 0; count < 60; count += 1) {
        const stream = begin(session, `${SERVICE}/CreateNamespace`, {
          "content-type": contentType,
          te: "trailers",
        });
        stream.resume();
        if (contentType.includes("grpc")) stream.write(prefix(16 * MIB - 1));
        const sent = new Promise((resolve) => stream.write(body, resolve));
        await Promise.race([sent, new Promise((resolve) => stream.once("close", resolve))]);
      }
    },
  };
}

export const unfinishedGrpc = unfinishedMessages("gRPC", "application/grpc");
export const unfinishedConnect = unfinishedMessages("Connect", "application/proto");
