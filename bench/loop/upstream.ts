import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A catalog over REST that answers every call with the same object. */
export interface LoopUpstream {
  readonly uri: string;
  /** From then on, it answers with the object; before, it answers with an empty one. */
  open(): void;
  close(): void;
}

/** Starts an upstream. */
export async function startUpstream(answer: object): Promise<LoopUpstream> {
  const whole = Buffer.from(JSON.stringify(answer));
  let body = Buffer.from("{}");
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader("content-type", "application/json").end(body);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open() {
      body = whole;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
