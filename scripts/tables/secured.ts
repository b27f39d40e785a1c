import type { SideFigures } from "../../bench/secured/calls.ts";
import type { SecuredResult } from "../../bench/secured.ts";
import type { Rounds } from "../../bench/support/results.ts";
import { markdownTable } from "./markdown.ts";
import { numberText, originText, readResult, shown } from "./rounds.ts";

const NEIGHBOURS: Readonly<Record<keyof SecuredResult["flood"], string>> = {
  alone: "nothing",
  flood: "a flood from 64 connections",
  permitted: "the same caller at 450 calls a second, which it may",
  spin: "a process that computes as much as the flood takes",
};

/** The rates of an open gateway and of a secured one, as `npm run bench -- secured` has written them. */
export function securedCallsTable(): string {
  const { origin, calls, listing, decisions } = readResult<SecuredResult>("secured");
  const rows = Object.entries({ ...calls, ...listing }).map(([title, sides]) => callsRow(title, sides));
  const table = markdownTable(
    ["Calls", "Open, /s", "Secured, /s", "Share, %", "Open, µs of CPU", "Secured, µs of CPU"],
    rows,
  );
  const { remembered, first } = decisions;
  const rounds = remembered.rounds.length;
  return `${table}\n\n${originText(rounds, origin)}. A decision by
1,000 policies takes ${shown(remembered)} µs once it was made, and the first one of a new caller ${shown(first)} µs.`;
}

function callsRow(title: string, [open, secured]: readonly SideFigures[]): string[] {
  if (open === undefined || secured === undefined) throw new Error(`${title} was not compared`);
  const sides = [open, secured];
  return [
    title,
    ...sides.map(({ rate }) => shown(rate)),
    shown(secured.share),
    ...sides.map(({ cpuMicros }) => shown(cpuMicros)),
  ];
}

/** The times of a quiet caller beside others. */
export function securedFloodTable(): string {
  const { flood } = readResult<SecuredResult>("secured");
  const rows = Object.entries(NEIGHBOURS).map(([name, title]) => {
    const { p50, p99, ratio, gatewayShare, neighbourShare, sent, refused } =
      flood[name as keyof typeof flood];
    const shares = `${percent(gatewayShare)} and ${percent(neighbourShare)}`;
    return [
      title,
      shown(p50),
      shown(p99),
      shown(ratio),
      shares,
      `${numberText(sent.median)}, ${numberText(refused.median)}`,
    ];
  });
  return markdownTable(
    ["Beside", "p50, ms", "p99, ms", "× the p99 alone", "CPU of gateway and neighbour, %", "Calls, refused"],
    rows,
  );
}

function percent({ median }: Rounds): string {
  return numberText(Math.round(median * 100));
}
