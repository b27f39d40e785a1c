import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A load of repeated HTTP/1.1 requests that takes little of the machine. */
export interface LightLoad {
  readonly port: number;
  readonly method: "GET" | "POST";
  /** Requested in turn; no path a second time before all others. */
  readonly paths: readonly string[];
  readonly body: string;
  /** Further headers of each request. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const OK = Buffer.from("HTTP/1.1 2");

/**
 * Returns the requests per second. It writes prepared bytes and reads no more of an answer than its status and its
 * length, because an HTTP client takes about as long for a request as the gateway. An answer other than 2xx throws.
 */
export async function runLightLoad(load: LightLoad): Promise<number> {
  const requests = load.paths.map((path) => requestOf(load, path));
  const started = performance.now();
  const end = started + load.seconds * 1000;
  const connections = Array.from({ length: load.connections }, (_, index) =>
    runConnection(load, requests, index, end),
  );
  const counts = await Promise.all(connections);
  return (counts.reduce((sum, count) => sum + count, 0) * 1000) / (performance.now() - started);
}

function requestOf({ method, body, port, headers = {} }: LightLoad, path: string): Buffer {
  const head = [`${method} ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, "content-type: application/json"];
  for (const [name, value] of Object.entries(headers)) head.push(`${name}: ${value}`);
  const length = method === "GET" ? [] : [`content-length: ${Buffer.byteLength(body)}`];
  return Buffer.from(`${[...head, ...length].join("\r\n")}\r\n\r\n${method === "GET" ? "" : body}`);
}

async function runConnection(
  { port, connections }: LightLoad,
  requests: readonly Buffer[],
  first: number,
  end: number,
): Promise<number> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  let next = first;
  let calls = 0;
  const send = () => {
    socket.write(requests[next % requests.length] as Buffer);
    next += connections;
  };
  try {
    const done = readAnswers(socket, () => {
      calls += 1;
      if (performance.now() >= end) return false;
      send();
      return true;
    });
    send();
    await done;
    return calls;
  } finally {
    socket.destroy();
  }
}

/** Calls back for each answer, until the callback returns false. */
function readAnswers(socket: Socket, onAnswer: () => boolean): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let rest: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const head = rest.indexOf(HEAD_END);
    if (head < 0) return;
    if (rest.compare(OK, 0, OK.length, 0, OK.length) !== 0) {
      reject(new Error(`an answer other than 2xx: ${rest.toString("latin1", 0, 200)}`));
      return;
    }
    const length = Number(/content-length: (\d+)/i.exec(rest.toString("latin1", 0, head))?.[1] ?? 0);
    if (rest.length < head + HEAD_END.length + length) return;
    // A connection waits for its answer before it sends again, so that nothing follows.
    rest = Buffer.alloc(0);
    if (!onAnswer()) resolve();
  });
  socket.on("error", reject);
  socket.on("close", () => reject(new Error("the server closed the connection")));
  return promise;
}
