import { computedSeconds } from "../support/cpu.ts";
import { percentile, runPacedLoad } from "../support/paced-load.ts";
import { type Rounds, roundsOf } from "../support/results.ts";
import type { Headers, Side } from "./gateways.ts";
import { measureBeside, type Neighbour } from "./neighbour.ts";
import { BENCH, visibleTables } from "./policy-set.ts";

const SECONDS = 4;
const CALLS_PER_SECOND = 200;
const CONNECTIONS = 64;

/** Calls per second that the gateway takes from a caller. */
export const LIMIT = 500;

/** Neighbours of the quiet caller, by what they do. */
const NAMES = ["alone", "flood", "permitted", "spin"] as const;
type Name = (typeof NAMES)[number];

/** Times of the quiet caller, in milliseconds. */
export interface QuietTimes {
  readonly p50: Rounds;
  readonly p99: Rounds;
  /** The p99 divided by that of the quiet caller alone in the same round. */
  readonly ratio: Rounds;
  /** Parts of a processor that the gateway and the neighbour's process took. */
  readonly gatewayShare: Rounds;
  readonly neighbourShare: Rounds;
  /** Answers of the neighbour's calls, and refusals among them. */
  readonly sent: Rounds;
  readonly refused: Rounds;
}

interface Round {
  readonly p50: number;
  readonly p99: number;
  readonly gatewayShare: number;
  readonly neighbourShare: number;
  readonly sent: number;
  readonly refused: number;
}

/**
 * Measures a caller that calls 200 times a second: alone, beside one that floods from 64 connections, beside the same caller with a
 * rate that it may have, and beside a process that only computes, as much as the flood takes from the machine.
 */
export async function compareFlood(
  { server }: Side,
  quiet: Headers,
  flooder: Headers,
  count: number,
): Promise<Readonly<Record<Name, QuietTimes>>> {
  const { port, pid } = server;
  const [table] = visibleTables(2);
  const target = { method: "POST", path: `/v1/table/${BENCH}$${table}/describe`, body: "{}" } as const;
  const load = { ...target, port, headers: quiet, perSecond: CALLS_PER_SECOND, seconds: SECONDS };
  const request = textOf(target, port, flooder);
  const sending = { port, request, connections: CONNECTIONS };
  const flood: Neighbour = { kind: "send", work: sending };
  const permitted: Neighbour = { kind: "send", work: { ...sending, perSecond: 0.9 * LIMIT } };

  async function times(neighbour?: Neighbour): Promise<Round> {
    const measure = async () => {
      const [before, started] = [computedSeconds(pid), performance.now()];
      const sorted = await runPacedLoad(load);
      const gatewayShare = ((computedSeconds(pid) - before) * 1000) / (performance.now() - started);
      return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), gatewayShare };
    };
    if (neighbour === undefined) return { ...(await measure()), neighbourShare: 0, sent: 0, refused: 0 };
    const { result, share, sent, refused } = await measureBeside(neighbour, measure);
    return { ...result, neighbourShare: share, sent, refused };
  }

  await times();
  const rounds: Record<Name, Round>[] = [];
  for (let round = 0; round < count; round++) {
    const alone = await times();
    const flooded = await times(flood);
    const share = flooded.neighbourShare + Math.max(0, flooded.gatewayShare - alone.gatewayShare);
    const spin: Neighbour = { kind: "spin", work: { share: Math.min(1, share) } };
    rounds.push({ alone, flood: flooded, permitted: await times(permitted), spin: await times(spin) });
  }
  const result = NAMES.map((name) => [name, summed(rounds, name)]);
  return Object.fromEntries(result) as Record<Name, QuietTimes>;
}

function textOf(
  { method, path, body }: { readonly method: string; readonly path: string; readonly body: string },
  port: number,
  headers: Headers,
): string {
  const all = { host: `127.0.0.1:${port}`, "content-type": "application/json", ...headers };
  const lines = Object.entries({ ...all, "content-length": body.length }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return `${[`${method} ${path} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n${body}`;
}

function summed(rounds: readonly Record<Name, Round>[], name: Name): QuietTimes {
  const of = (value: (round: Round, all: Record<Name, Round>) => number) =>
    roundsOf(rounds.map((all) => value(all[name], all)));
  return {
    p50: of(({ p50 }) => p50),
    p99: of(({ p99 }) => p99),
    ratio: of(({ p99 }, { alone }) => p99 / alone.p99),
    gatewayShare: of(({ gatewayShare }) => gatewayShare),
    neighbourShare: of(({ neighbourShare }) => neighbourShare),
    sent: of(({ sent }) => sent),
    refused: of(({ refused }) => refused),
  };
}
