import assert from "node:assert/strict";
import { test } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";

const SECOND = "DELETE /v1/second HTTP/1.1\r\nhost: localhost\r\n\r\n";

/** Heads after which a proxy and the gateway could disagree where the body ends, so that {@link SECOND} would be a request of its own. */
const AMBIGUOUS: Readonly<Record<string, readonly string[]>> = {
  "a length and chunks": [`content-length: ${SECOND.length + 5}`, "transfer-encoding: chunked"],
  "chunks and a length": ["transfer-encoding: chunked", "content-length: 5"],
  "two lengths": ["content-length: 0", `content-length: ${SECOND.length}`],
  "a list of lengths": [`content-length: 0, ${SECOND.length}`],
  "a length with a sign": ["content-length: +0"],
  "a coding that is not known": ["transfer-encoding: xchunked"],
  "chunks that are not the last coding": ["transfer-encoding: chunked, identity"],
  "a space before the colon": ["transfer-encoding : chunked"],
  "a folded line": ["transfer-encoding:", " chunked"],
  "a line that ends in a line feed alone": ["x: y\ntransfer-encoding: chunked"],
};

for (const [title, headers] of Object.entries(AMBIGUOUS)) {
  test(`a request with ${title} is refused, and nothing after it is a request`, async () => {
    const seen: string[] = [];
    await using server = await startServer({
      rest(request, response) {
        seen.push(`${request.method} ${request.url}`);
        request.resume().on("end", () => response.end("served"));
      },
    });
    const { socket, received, closed } = rawConnection(server.port);
    const head = ["POST /v1/first HTTP/1.1", "host: localhost", ...headers].join("\r\n");
    socket.write(`${head}\r\n\r\n0\r\n\r\n${SECOND}`);
    await closed;
    assert.match(received(), /^HTTP\/1\.1 400 /);
    assert.doesNotMatch(received(), /served/);
    assert.deepEqual(
      seen.filter((line) => line.startsWith("DELETE")),
      [],
    );
  });
}
