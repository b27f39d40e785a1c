import { type CaseFigures, type RemoteResult, SIDES } from "../../bench/remote.ts";
import type { Rounds } from "../../bench/support/results.ts";
import { markdownTable } from "./markdown.ts";
import { originText, readResult, shown } from "./rounds.ts";

/** The client on a directory and through gateways, as `npm run bench -- remote` has written it. */
export function remoteTable(): string {
  const { origin, allocator, cases } = readResult<RemoteResult>("remote");
  const rows = Object.entries(cases).flatMap(([title, sides]) =>
    FIGURES.filter(({ name }) => sides.library?.[name] !== undefined).map(({ name, unit }) => [
      `${title}, ${unit}`,
      ...SIDES.map((side) => shownIfAny(sides[side]?.[name])),
    ]),
  );
  const rounds = Object.values(cases)[0]?.library?.p50?.rounds.length;
  return `${markdownTable(["Work", ...SIDES], rows)}\n\n${originText(rounds, origin)}, gateways with ${allocatorText(allocator)}.`;
}

function shownIfAny(figure: Rounds | undefined): string {
  return figure === undefined ? "" : shown(figure);
}

function allocatorText(allocator: RemoteResult["allocator"]): string {
  const set = Object.entries(allocator).map(([name, value]) => `\`${name}=${value}\``);
  return set.length === 0 ? "the C library's allocator" : set.join(" and ");
}

const FIGURES: readonly { readonly name: keyof CaseFigures; readonly unit: string }[] = [
  { name: "p50", unit: "p50 in ms" },
  { name: "p99", unit: "p99 in ms" },
  { name: "rate", unit: "per second" },
  { name: "megabytes", unit: "MB/s" },
];
