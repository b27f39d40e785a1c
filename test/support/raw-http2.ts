import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Types of frames. */
const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE] = [0, 1, 3, 4, 6, 8];
/** Flags of frames; a DATA or HEADERS frame with the first ends its stream, in a SETTINGS or PING frame it is an acknowledgement. */
const [END_STREAM, ACK, END_HEADERS] = [1, 1, 4];
const HEAD_BYTES = 9;
const INITIAL_WINDOW_SIZE = 4;
const LARGEST_WINDOW = 2 ** 31 - 1;
const DEFAULT_WINDOW = 65_535;
const CANCEL = Buffer.from([0, 0, 0, 8]);

/** A request that is sent many times. */
export interface FloodRequest {
  readonly headers: Readonly<Record<string, string>>;
  /** Default: the request ends with its headers. */
  readonly body?: Buffer;
  /** Whether a reset follows each request at once. Default: false. */
  readonly isReset?: boolean;
}

/** A connection that sends requests faster than a client of node can make them, because all of them are equal bytes. */
export interface FloodConnection {
  readonly socket: Socket;
  /** Number of streams that the server has begun to answer. */
  readonly answered: number;
  /** Number of streams that the server has ended. */
  readonly ended: number;
  /** Sends a request this many times in a single piece. */
  send(request: FloodRequest, count: number): void;
  /** Resolves when the server has ended this many streams in all, or the connection. */
  untilEnded(count: number): Promise<void>;
}

/**
 * Connects without TLS, with windows that hold any answer. It counts the frames that arrive, and keeps none.
 *
 * @param first requests in the same piece as the preface. Default: none
 */
export async function openFlood(
  port: number,
  first?: { readonly request: FloodRequest; readonly count: number },
): Promise<FloodConnection> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  const settings = Buffer.alloc(6);
  settings.writeUInt16BE(INITIAL_WINDOW_SIZE);
  settings.writeUInt32BE(LARGEST_WINDOW, 2);
  const window = Buffer.alloc(4);
  window.writeUInt32BE(LARGEST_WINDOW - DEFAULT_WINDOW);
  let [nextId, ended] = [1, 0];
  socket.cork();
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  socket.write(Buffer.concat([frame(SETTINGS, 0, 0, settings), frame(WINDOW_UPDATE, 0, 0, window)]));
  if (first !== undefined) send(first.request, first.count);
  socket.uncork();

  function send({ headers, body, isReset = false }: FloodRequest, count: number): void {
    const block = encodeHeaders(headers);
    const frames: Buffer[] = [];
    for (let sent = 0; sent < count; sent++, nextId += 2) {
      const endFlag = body === undefined ? END_STREAM : 0;
      frames.push(frame(HEADERS, END_HEADERS | endFlag, nextId, block));
      if (body !== undefined) frames.push(frame(DATA, END_STREAM, nextId, body));
      if (isReset) frames.push(frame(RST_STREAM, 0, nextId, CANCEL));
    }
    socket.write(Buffer.concat(frames));
  }

  const answered = new Set<number>();
  let waiting: (() => void)[] = [];
  const wake = () => {
    for (const go of waiting.splice(0)) go();
  };
  socket.on("close", wake);
  let rest: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  socket.on("data", (piece: Buffer) => {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    for (; rest.length >= HEAD_BYTES; rest = rest.subarray(HEAD_BYTES + rest.readUIntBE(0, 3))) {
      const end = HEAD_BYTES + rest.readUIntBE(0, 3);
      if (rest.length < end) break;
      const [type, flags] = [rest[3] as number, rest[4] as number];
      if (type === HEADERS) answered.add(rest.readUInt32BE(5));
      if (type === RST_STREAM || ((type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0)) ended++;
      else if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0));
      else if (type === PING && (flags & ACK) === 0)
        socket.write(frame(PING, ACK, 0, rest.subarray(HEAD_BYTES, end)));
    }
    wake();
  });
  return {
    socket,
    get answered() {
      return answered.size;
    },
    get ended() {
      return ended;
    },
    send,
    async untilEnded(count) {
      while (ended < count && !socket.destroyed) await new Promise<void>((go) => waiting.push(go));
      waiting = [];
    },
  };
}

function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Encodes headers as literals without an index; no name or value has more than 126 bytes. */
function encodeHeaders(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.of(value.length), Buffer.from(value, "latin1")]);
  const literals = Object.entries(headers).map(([name, value]) =>
    Buffer.concat([Buffer.of(0), text(name), text(value)]),
  );
  return Buffer.concat(literals);
}
