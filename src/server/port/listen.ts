import { once } from "node:events";
import { chmodSync, existsSync } from "node:fs";
import { lstat, unlink } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { dirname } from "node:path";

/** Mask of the modes of new files until a socket has its own mode: nobody but the owner connects meanwhile. */
const OWNER_ONLY = 0o177;

/** Where a listener accepts connections. */
export type ListenAddress = PortAddress | SocketAddress;

/** A port of TCP. */
interface PortAddress {
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  /** Whether several listeners share the port; the system spreads connections over them. Default: false. */
  readonly reusePort?: boolean | undefined;
}

/** A Unix socket, which only programs of this machine reach. */
export interface SocketAddress {
  readonly path: string;
  /** Mode of its file: who may write it may connect. */
  readonly mode: number;
}

/**
 * Starts to listen. A Unix socket has its path as address, the family `unix` and the port 0.
 *
 * @throws Error of node:net for a port, and Error with a single line for a Unix socket.
 */
export async function listenOn(server: Server, where: ListenAddress): Promise<AddressInfo> {
  if ("path" in where) {
    await listenOnSocket(server, where);
    return { address: where.path, family: "unix", port: 0 };
  }
  server.listen(where);
  await once(server, "listening");
  return server.address() as AddressInfo;
}

/**
 * Listens on a Unix socket. A file that a crashed process has left is replaced; closing the server removes the file.
 *
 * @throws Error with a single line if somebody listens there, if another file is there, or if the socket cannot be made.
 */
async function listenOnSocket(server: Server, { path, mode }: SocketAddress): Promise<void> {
  try {
    if (!(await bindIfFree(server, path))) {
      await removeStale(path);
      await bind(server, path);
    }
  } catch (error) {
    const { code: given, message } = error as NodeJS.ErrnoException;
    if (given === undefined) throw error;
    // libuv reports a missing directory as one without the right to write.
    const code = existsSync(dirname(path)) ? given : "ENOENT";
    throw new Error(`${path} cannot be listened on: ${REASONS[code] ?? message}`, { cause: error });
  }
  chmodSync(path, mode);
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "its directory does not exist",
  EACCES: "the gateway may not write to its directory",
  EINVAL: "the path is too long",
  ENAMETOOLONG: "the path is too long",
  EADDRINUSE: "another process was faster",
};

/** Binds a server to a path; returns false if there is a file. */
async function bindIfFree(server: Server, path: string): Promise<boolean> {
  try {
    await bind(server, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  }
}

async function bind(server: Server, path: string): Promise<void> {
  // The file appears during the system call, so its first mode has to be right.
  const mask = process.umask(OWNER_ONLY);
  try {
    server.listen({ path });
  } finally {
    process.umask(mask);
  }
  await once(server, "listening");
}

/** Removes the file of a socket on which nobody listens. */
async function removeStale(path: string): Promise<void> {
  const file = await lstat(path);
  if (!file.isSocket()) throw new Error(`${path} exists and is not a socket`);
  if (await answers(path)) throw new Error(`somebody listens on ${path}`);
  await unlink(path);
}

/** Whether somebody listens on a socket. Only a refusal shows that nobody does. */
function answers(path: string): Promise<boolean> {
  const socket = connect({ path });
  return new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ECONNREFUSED"));
  }).finally(() => socket.destroy());
}

/**
 * Checks that nobody listens on an address. Workers share their port, also with another process of the same user, which
 * would then get a part of the connections.
 *
 * @throws Error of node:net, if the address is in use or does not exist
 */
export async function checkIsFree({ host, port }: PortAddress): Promise<void> {
  if (port !== 0) await listenOnce({ host, port });
}

/** Whether the system spreads the connections of a port over several listeners. */
export async function canSharePort(host: string): Promise<boolean> {
  try {
    await listenOnce({ host, port: 0, reusePort: true });
    return true;
  } catch (error) {
    if (UNSUPPORTED.includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

const UNSUPPORTED = ["ENOTSUP", "EINVAL", "ENOPROTOOPT"];

async function listenOnce(where: PortAddress): Promise<void> {
  const server = createServer().listen(where);
  await once(server, "listening");
  server.close();
  await once(server, "close");
}
