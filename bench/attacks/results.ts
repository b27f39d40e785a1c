import { once } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { QueryTableRequestSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import type { Attack, Target } from "./attack.ts";
import { begin, envelope, head, openRaw, openSession } from "./connections.ts";

const READERS = 200;
const ARROW = "application/vnd.apache.arrow.stream";
const RPC = "/lance.namespace.v1.LanceNamespaceService/QueryTable";

/** Number of bytes of a result that a client reads before it leaves. */
const TAKEN_BYTES = 64 * 1024;

function restRequest({ table }: Target): string {
  const headers = { accept: ARROW, "content-type": "application/json", "content-length": 2 };
  return `${head(`/v1/table/${table}/query`, headers)}{}`;
}

function rpcRequest({ table }: Target): Buffer {
  return envelope(toBinary(QueryTableRequestSchema, create(QueryTableRequestSchema, { id: [table] })));
}

/** Queries whose results nobody reads, each on its own connection. */
export const unreadRest: Attack = {
  title: `${READERS} results of 60 MB that nobody reads, REST`,
  async launch(target) {
    for (let count = 0; count < READERS; count += 1) {
      const socket = await openRaw(target.port);
      socket.pause().write(restRequest(target));
    }
  },
};

/** Returns the attack over a protocol on HTTP/2, with twenty queries on each connection. */
function unreadOverHttp2(protocol: string, contentType: string): Attack {
  return {
    title: `${READERS} results of 60 MB that nobody reads, ${protocol}`,
    async launch(target) {
      for (let count = 0; count < READERS / 20; count += 1) {
        const session = await openSession(target.port);
        for (let each = 0; each < 20; each += 1) {
          begin(session, RPC, { "content-type": contentType, te: "trailers" }).end(rpcRequest(target));
        }
      }
    },
  };
}

export const unreadGrpc = unreadOverHttp2("gRPC", "application/grpc");
export const unreadConnect = unreadOverHttp2("Connect", "application/connect+proto");

/** Queries whose clients leave after the first bytes, one after the other. */
export const abandoned: Attack = {
  title: `${READERS} results of 60 MB that are left after 64 KB, REST`,
  async launch(target) {
    const leave = async () => {
      const socket = await openRaw(target.port);
      socket.write(restRequest(target));
      for (let taken = 0; taken < TAKEN_BYTES && !socket.destroyed; ) {
        const [piece] = (await once(socket, "data")) as [Buffer];
        taken += piece.length;
      }
      socket.destroy();
    };
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let count = 0; count < READERS / 20; count += 1) await leave().catch(() => {});
      }),
    );
  },
};
