import { connect } from "node:http2";
import { expect, test } from "vitest";
import { startServer } from "../../../test/fixtures/server/server.ts";

test("a method that a client of HTTP/2 invents gets 405, whatever the path", async () => {
  await using server = await startServer();
  const session = connect(server.url);
  try {
    for (const path of ["/v1/x", "/nothing/here", "/healthz"]) {
      const stream = session.request({ ":method": "INVENTED", ":path": path });
      const [headers] = await new Promise<[Record<string, unknown>]>((resolve, reject) =>
        stream.on("response", (...args) => resolve(args as never)).on("error", reject),
      );
      expect([headers[":status"], headers["allow"]], path).toEqual([405, "GET, HEAD, POST"]);
      stream.close();
    }
  } finally {
    session.destroy();
  }
});
