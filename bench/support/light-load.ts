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
const OK = "HTTP/1.1 2";

/** Size of the buffer into which a connection reads again and again, in bytes. */
const READ_BYTES = 64 * 1024;

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
  const reader = createReader();
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, onread: reader.onread });
  await once(socket, "connect");
  let next = first;
  let calls = 0;
  const send = () => {
    socket.write(requests[next % requests.length] as Buffer);
    next += connections;
  };
  try {
    const done = reader.read(socket, () => {
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

/** Reads a connection without a stream of pieces, which would cost as much as the call itself. */
function createReader() {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let onAnswer = () => false;
  /** Bytes of the current answer that have arrived, and how many it has; undefined before its head is there. */
  let [head, arrived, expected]: [string, number, number | undefined] = ["", 0, undefined];

  function take(length: number, buffer: Uint8Array): boolean {
    arrived += length;
    if (expected === undefined) {
      const bytes = Buffer.from(buffer.buffer, buffer.byteOffset, length);
      const end = bytes.indexOf(HEAD_END);
      head += bytes.toString("latin1", 0, end < 0 ? length : end);
      if (!head.startsWith(OK))
        reject(new Error(`an answer other than 2xx: ${bytes.toString("latin1", 0, 200)}`));
      if (end < 0) return true;
      expected = arrived - length + end + HEAD_END.length + contentLength(head);
    }
    if (arrived < expected) return true;
    // A connection waits for its answer before it sends again, so that nothing follows.
    [head, arrived, expected] = ["", 0, undefined];
    if (!onAnswer()) resolve();
    return true;
  }
  return {
    onread: { buffer: new Uint8Array(READ_BYTES), callback: take },
    /** Calls back for each answer, until the callback returns false. */
    read(socket: Socket, callback: () => boolean): Promise<void> {
      onAnswer = callback;
      socket.on("error", reject);
      socket.on("close", () => reject(new Error("the server closed the connection")));
      return promise;
    },
  };
}

function contentLength(head: string): number {
  const at = head.toLowerCase().indexOf("content-length: ");
  return at < 0 ? 0 : Number.parseInt(head.slice(at + "content-length: ".length), 10);
}
