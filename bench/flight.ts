// Arrow Flight beside pyarrow's own server and the least that a server on Node does: DoPut and DoGet of the same table by the same client, in turns,
// and `SELECT 1` through ADBC, which pyarrow's answers with a constant: the least that it can take. All servers are processes of their own; only the
// gateway, which is the built package, stores the table, and the others keep it in memory.
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { type Figures, startFigures } from "./support/figures.ts";
import { watchMemory } from "./support/memory.ts";
import { startPackage, startProcess, startServer } from "./support/process.ts";
import { roundsOf } from "./support/results.ts";

const PEER = join(import.meta.dirname, "flight", "peer.py");

/** Rate and computing time of a transfer of the table. */
interface Move {
  /** In MB/s. */
  readonly rate: number;
  /** Computing time of the server and of the client, in seconds for a gigabyte. */
  readonly server: number;
  readonly client: number;
}

/** By the process of the server. */
type Moves = Readonly<Record<string, { readonly put: readonly Move[]; readonly get: readonly Move[] }>>;

/** Times of a statement, in milliseconds. */
interface Select {
  readonly least: number;
  readonly p50: number;
}

/** Runs the comparison: `[--size MEBIBYTES] [--rounds NUMBER] [--statements NUMBER]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const options = {
    size: { type: "string", default: "1024" },
    rounds: { type: "string", default: "3" },
    statements: { type: "string", default: "500" },
  } as const;
  const { size, rounds, statements } = parseArgs({ args: [...args], options }).values;
  const python = pythonInterpreter();
  const root = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const gateway = await startPackage("--root", root, "--max-upload-size", "4GiB");
  const peer = await startProcess([python, PEER, "serve"], /^(\d+)$/);
  const bare = await startServer("flight/bare.ts");
  const servers = { gateway, pyarrow: peer, "bare node:http2": bare };
  try {
    const ask = async (...command: readonly string[]) =>
      JSON.parse((await promisify(execFile)(python, [PEER, ...command])).stdout);
    const memory = watchMemory(gateway.pid);
    const addresses = Object.values(servers).map(({ pid, port }) => `${pid}=127.0.0.1:${port}`);
    const moves: Moves = await ask("rows", size, rounds, ...addresses);
    const peakMiB = memory.peak() / 2 ** 20;
    const [own, other] = [`127.0.0.1:${gateway.port}`, `127.0.0.1:${peer.port}`];
    const selects: Readonly<Record<string, Select>> = await ask("select", statements, own, other);
    const selectMs = { gateway: selects[own] as Select, constant: selects[other] as Select };
    const transfers = startFigures(
      ...["transfer", "server", "MB/s", "the server computes, s/GB", "the client computes, s/GB"],
    );
    for (const [what, kind] of [
      ["DoGet", "get"],
      ["DoPut", "put"],
    ] as const) {
      const of = (name: keyof typeof servers, value: keyof Move) =>
        roundsOf((moves[servers[name].pid] as Moves[string])[kind].map((move) => move[value]));
      for (const name of Object.keys(servers) as (keyof typeof servers)[]) {
        const least = 0.8 * of("pyarrow", "rate").median;
        const goal = { of: of(name, "rate").median, least, unit: "MB/s, 0.8 × pyarrow's" };
        const cells = [what, name, of(name, "rate"), of(name, "server"), of(name, "client")];
        transfers.add(cells, ...(name === "gateway" ? [goal] : []));
      }
    }
    const others = startFigures("other figures", "gateway", "pyarrow's server");
    others.add(["peak memory, MiB", Math.round(peakMiB), ""], { of: peakMiB, most: 400, unit: "MiB" });
    const { gateway: own50, constant } = selectMs;
    others.add(["`SELECT 1` through ADBC, p50 in ms", own50.p50, constant.p50], {
      ...{ of: own50.p50, most: 2, unit: "ms" },
    });
    others.add(["the least, in ms", own50.least, constant.least]);
    return [transfers, others];
  } finally {
    await Promise.all(Object.values(servers).map((server) => server.stop()));
    await rm(root, { recursive: true, force: true });
  }
}
