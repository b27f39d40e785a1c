import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";

/** A request of a client, with its route in place of its path. */
export interface RecordedRequest {
  /** Method and route, for example `POST /v1/table/{id}/query`. */
  readonly route: string;
  readonly status: number;
}

/** A proxy in front of a gateway that records the requests of its clients. */
export interface Recorder {
  readonly uri: string;
  /** Returns the requests since the last call of it. `GET /recorded` answers with the same. */
  take(): RecordedRequest[];
  close(): Promise<void>;
}

const NAMED = /^\/v1\/(table|namespace|materialized_view|view|secret|function|transaction)\/[^/]+(?=\/)/;

/** Returns the route of a request: its path without the names of what it is about. */
export function routeOf(method: string, url: string): string {
  const path = url.replace(/\?.*$/, "").replace(/(?<=.)\/$/, "");
  const route = path
    .replace(NAMED, "/v1/$1/{id}")
    .replace(/\/index\/(?!list$)[^/]+\//, "/index/{name}/")
    .replace(/\/blob\/[^/]+\/[^/]+\//, "/blob/{column}/{row}/");
  return `${method} ${route}`;
}

/** Starts a recorder in front of the gateway at a URI. */
export async function startRecorder(target: string, port = 0): Promise<Recorder> {
  let recorded: RecordedRequest[] = [];
  const take = () => {
    const taken = recorded;
    recorded = [];
    return taken;
  };
  const { hostname, port: targetPort } = new URL(target);
  const server = createServer((received, answer) => {
    const { method = "GET", url = "/", headers } = received;
    if (url === "/recorded") {
      answer.end(JSON.stringify(take()));
      return;
    }
    // A connection of its own: the gateway may end an idle one just when a request begins.
    const sent = request({ hostname, port: targetPort, method, path: url, headers, agent: false });
    sent.on("response", (response) => {
      const { statusCode: status = 502 } = response;
      recorded.push({ route: routeOf(method, url), status });
      answer.writeHead(status, response.headers);
      pipeline(response, answer, () => {});
    });
    sent.on("error", () => answer.destroy());
    pipeline(received, sent, () => {});
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    take,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
