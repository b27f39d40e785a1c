import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { ERROR_TABLE } from "../../../src/namespace/errors.ts";
import { people, personStream } from "../../support/arrow.ts";
import { CallError, type LanceClient } from "../../support/client.ts";
import { temporaryDirectory } from "../../support/directory.ts";
import { createGrpcClient } from "../../support/grpc-client.ts";
import { startProgram } from "../../support/program.ts";

/** The target table of requests. */
export const TABLE = ["t"];
/** A namespace in addition to the table. */
export const NAMESPACE = ["ns"];

const ROWS = 300;
const ANSWER_MS = 60_000;
/** Maximum memory of a server, in bytes; without the bounds it would take all memory. */
const MEMORY_BYTES = 1.5 * 1024 ** 3;

/** The outcome of a call: an answer, or the code of an error. */
export type Outcome = { readonly answer: unknown } | { readonly code: number };

/** A server in a process of its own that requests try to end. */
export interface Target {
  readonly client: LanceClient;
  readonly port: number;
  /** Restores the original state of the table. */
  restore(): Promise<void>;
  /**
   * Sends a request. The server must answer in time, with success or with a row of the error table other than Internal,
   * and must survive.
   *
   * @param what the request, for the message of a failure
   */
  send(what: unknown, call: (client: LanceClient) => Promise<unknown>): Promise<Outcome>;
  /** Checks that the server is alive and within its memory. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server whose table has an index of each family. */
export async function startTarget(): Promise<Target> {
  const directory = await temporaryDirectory();
  const program = startProgram("serve", "--root", directory.path, "--port", "0", "--log-level", "error");
  const port = await program.listening();
  const { client, close } = createGrpcClient(port);
  const died = program.ended.then(({ code, signal, stderr }) => {
    throw new Error(`the server ended: code ${code}, signal ${signal}\n${stderr.slice(-2000)}`);
  });
  died.catch(() => {});
  await client.createNamespace({ id: NAMESPACE });

  async function send(what: unknown, call: (client: LanceClient) => Promise<unknown>): Promise<Outcome> {
    const sent = describe(what);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer in ${ANSWER_MS} ms: ${sent}`)), ANSWER_MS);
    });
    try {
      return { answer: await Promise.race([call(client), late, died]) };
    } catch (error) {
      if (!(error instanceof CallError)) throw new Error(`${(error as Error).message}\nafter ${sent}`);
      // If the server has ended, its end explains more than the error of the call.
      const { code } = error.failure;
      if (code === undefined) await Promise.race([died, new Promise((resolve) => setTimeout(resolve, 1000))]);
      const row = ERROR_TABLE.find((entry) => entry.code === code);
      if (row === undefined || row.name === "Internal")
        assert.fail(`${error.message}\nafter ${sent}\n${await logOf()}`);
      return { code: row.code };
    } finally {
      clearTimeout(timer);
    }
  }
  /** Returns the start of the server's log; it ends the server. */
  async function logOf(): Promise<string> {
    program.child.kill();
    const { stderr } = await program.ended;
    return stderr.slice(0, 4000);
  }

  const target: Target = {
    client,
    port,
    send,
    async restore() {
      await client.createTable({ id: TABLE, mode: 3 }, personStream(people(ROWS)));
      for (const index of [
        { column: "id", indexType: "BTREE" },
        { column: "name", indexType: "FTS", withPosition: true },
        { column: "vector", indexType: "IVF_FLAT", numPartitions: 2 },
      ]) {
        await client.createTableIndex({ id: TABLE, ...index });
      }
    },
    async check() {
      await send("a look at the namespace", () => client.listTables({ id: [] }));
      if (process.platform !== "linux") return;
      const status = await readFile(`/proc/${program.child.pid}/status`, "utf8");
      const peak = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
      assert.ok(peak < MEMORY_BYTES, `the server took ${Math.round(peak / 1024 ** 2)} MiB`);
    },
    async close() {
      close();
      program.child.kill("SIGKILL");
      await program.ended;
      await directory.remove();
    },
  };
  await target.restore();
  return target;
}

function describe(what: unknown): string {
  const text = typeof what === "string" ? what : JSON.stringify(what, (_, value) => plain(value));
  return text.length > 1500 ? `${text.slice(0, 1500)}… (${text.length} characters)` : text;
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
