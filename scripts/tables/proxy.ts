import { type Rounds, roundsOf } from "../../bench/support/results.ts";
import { markdownTable } from "./markdown.ts";
import { missedText, originText, readResult, shown, shownWhole } from "./rounds.ts";

/** Calls per second of a core by server; the gateway is the first. */
type Servers = Readonly<Record<string, Rounds>>;

interface ProxyResult {
  readonly rest: Servers;
  readonly grpc: Servers;
  readonly latencyMs: Readonly<Record<"upstream" | "gateway" | "added", Rounds>>;
}

/** The part of another server's calls that the gateway has to serve at least. */
const GOALS: Readonly<Record<string, number>> = {
  "Rust REST adapter": 1,
  "bare node:http and undici": 0.9,
  "bare @grpc/grpc-js": 0.8,
};
const MOST_ADDED_MS = 0.2;

/** The gateway beside other proxies, as `npm run bench -- proxy` has written it. */
export function proxyTable(): string {
  const { origin, rest, grpc, latencyMs } = readResult<ProxyResult>("proxy");
  const rows = [
    ...rowsOf("REST to REST, 64 connections", rest),
    ...rowsOf("gRPC to gRPC, 4 connections with 16 calls at once", grpc),
  ];
  const table = markdownTable(["", "calls per second of a core", "gateway is", "goal"], rows);
  const { added } = latencyMs;
  const latency = `The gateway adds ${shown(added)} ms to the p50 of a sequential describe over REST; the goal is ${MOST_ADDED_MS}${missedText(added.median > MOST_ADDED_MS)}.`;
  return `${table}\n\n${originText(added.rounds.length, origin)}. ${latency}`;
}

function rowsOf(title: string, servers: Servers): string[][] {
  const [[, gateway], ...others] = Object.entries(servers) as [[string, Rounds], ...[string, Rounds][]];
  return [
    [`${title}: gateway`, shownWhole(gateway), "", ""],
    ...others.map(([name, other]) => {
      const times = roundsOf(gateway.rounds.map((rate, round) => rate / (other.rounds[round] as number)));
      const goal = GOALS[name];
      const goalText = goal === undefined ? "" : `${goal} ×${missedText(times.median < goal)}`;
      return [name, shownWhole(other), `${shown(times)} ×`, goalText];
    }),
  ];
}
