import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { GRPC_HEADERS, type GrpcCall, messageFrame } from "./grpc-answer.ts";

/** A load of repeated calls to one unary rpc with one request. */
export interface GrpcLoad extends GrpcCall {
  /** Number of concurrent calls on each connection. */
  readonly concurrency: number;
  readonly connections: number;
  readonly seconds: number;
}

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME = { data: 0, headers: 1, settings: 4, goaway: 7, windowUpdate: 8 } as const;
/** Position of the stream's number in a frame. */
const STREAM_AT = 5;
const END_STREAM = 1;
const END_HEADERS = 4;
const LARGEST_WINDOW = 0x7fff_ffff;
const SETTINGS_INITIAL_WINDOW_SIZE = 4;

/**
 * Returns the calls per second of a unary rpc over HTTP/2 with prior knowledge. It writes and counts frames by itself,
 * because node:http2 as a client takes longer for a call than the compared servers. A call counts when its answer has a
 * message and has ended; any other answer throws. The calls that follow those of a piece are sent together.
 */
export async function runGrpcLoad(load: GrpcLoad): Promise<number> {
  const started = performance.now();
  const counts = await Promise.all(Array.from({ length: load.connections }, () => runConnection(load)));
  const elapsed = (performance.now() - started) / 1000;
  return counts.reduce((sum, count) => sum + count, 0) / elapsed;
}

async function runConnection(load: GrpcLoad): Promise<number> {
  const socket = connect({ port: load.port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  socket.write(greeting());
  const { send, done } = createCalls(socket, load);
  send(load.concurrency);
  try {
    return await done;
  } finally {
    socket.destroy();
  }
}

/** A request whose frames lack the numbers of their stream, and where those belong. */
interface Template {
  readonly bytes: Buffer;
  readonly streams: readonly number[];
}

function templateOf(load: GrpcLoad): Template {
  const headers = frame(FRAME.headers, END_HEADERS, 0, headerBlock(load.path, load.port));
  const body = frame(FRAME.data, END_STREAM, 0, messageFrame(load.message));
  return { bytes: Buffer.concat([headers, body]), streams: [STREAM_AT, headers.length + STREAM_AT] };
}

function createCalls(socket: Socket, load: GrpcLoad): { send(calls: number): void; done: Promise<number> } {
  const { bytes, streams } = templateOf(load);
  const end = performance.now() + load.seconds * 1000;
  const answered = new Set<number>();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let nextStream = 1;
  let open = 0;
  let calls = 0;
  /** Calls that have ended with the current piece. */
  let ended = 0;
  let rest: Buffer = Buffer.alloc(0);

  /** Begins calls with a single write. */
  function send(calls: number): void {
    const requests = Buffer.allocUnsafe(calls * bytes.length);
    for (let at = 0; at < requests.length; at += bytes.length) {
      bytes.copy(requests, at);
      for (const place of streams) requests.writeUInt32BE(nextStream, at + place);
      nextStream += 2;
    }
    open += calls;
    socket.write(requests);
  }

  function onFrame(type: number, flags: number, stream: number): void {
    if (type === FRAME.goaway) reject(new Error("the server sent GOAWAY"));
    if (type === FRAME.settings && (flags & 1) === 0)
      socket.write(frame(FRAME.settings, 1, 0, Buffer.alloc(0)));
    if (type === FRAME.data) answered.add(stream);
    if (type > FRAME.headers || (flags & END_STREAM) === 0) return;
    if (!answered.delete(stream)) reject(new Error("a call was answered without a message"));
    calls += 1;
    open -= 1;
    ended += 1;
  }

  socket.on("data", (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let offset = 0;
    while (rest.length - offset >= 9) {
      const length = rest.readUIntBE(offset, 3);
      if (rest.length - offset < 9 + length) break;
      onFrame(rest[offset + 3] ?? 0, rest[offset + 4] ?? 0, rest.readUInt32BE(offset + 5));
      offset += 9 + length;
    }
    rest = rest.subarray(offset);
    if (ended > 0 && performance.now() < end) send(ended);
    else if (open === 0) resolve(calls);
    ended = 0;
  });
  socket.on("error", reject);
  socket.on("close", () => reject(new Error("the server closed the connection")));
  return { send, done: promise };
}

/** Returns the preface, with windows so large that they never hold an answer back. */
function greeting(): Buffer {
  const settings = Buffer.alloc(6);
  settings.writeUInt16BE(SETTINGS_INITIAL_WINDOW_SIZE, 0);
  settings.writeUInt32BE(LARGEST_WINDOW, 2);
  const update = Buffer.alloc(4);
  update.writeUInt32BE(LARGEST_WINDOW - 65_535);
  return Buffer.concat([
    Buffer.from(PREFACE),
    frame(FRAME.settings, 0, 0, settings),
    frame(FRAME.windowUpdate, 0, 0, update),
  ]);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(9 + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  payload.copy(bytes, 9);
  return bytes;
}

/** Returns the request headers in HPACK, as literals without indexing and without Huffman codes. */
function headerBlock(path: string, port: number): Buffer {
  const fields = {
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": `127.0.0.1:${port}`,
    ...GRPC_HEADERS,
  };
  const parts = Object.entries(fields).flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]);
  return Buffer.concat(parts);
}

function text(value: string): Buffer {
  return Buffer.concat([Buffer.of(value.length), Buffer.from(value, "ascii")]);
}
