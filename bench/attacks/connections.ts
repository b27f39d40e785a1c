import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";

const MIB = 1024 * 1024;

/** Opens an HTTP/1.1 connection for raw bytes whose answers nobody reads. */
export async function openRaw(port: number): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Returns the head of an HTTP/1.1 request. */
export function head(path: string, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries({ host: "localhost", ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** Opens an HTTP/2 connection with windows for a whole answer of a few megabytes. */
export async function openSession(port: number): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://127.0.0.1:${port}`, {
    settings: { initialWindowSize: 16 * MIB },
    maxSessionMemory: 1024,
  });
  session.on("error", () => {});
  await once(session, "connect");
  session.setLocalWindowSize(1024 * MIB);
  return session;
}

/** Begins a request over HTTP/2 whose answer nobody reads. */
export function begin(
  session: ClientHttp2Session,
  path: string,
  headers: Readonly<Record<string, string>>,
): ClientHttp2Stream {
  const stream = session.request({ ":method": "POST", ":path": path, ...headers });
  stream.on("error", () => {});
  return stream;
}

/** Returns the five bytes before a message of gRPC, and of Connect's streams. */
export function prefix(length: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

/** Returns a message with its prefix. */
export function envelope(message: Uint8Array): Buffer {
  return Buffer.concat([prefix(message.length), message]);
}
