import { setTimeout as sleep } from "node:timers/promises";
import { type Fleet, startFleet } from "../../test/support/fleet.ts";
import { type Ending, troublesIn } from "../../test/support/program.ts";
import { type Audit, audit } from "./audit.ts";
import { type BesideFresh, type Side, workBesideFresh } from "./beside-fresh.ts";
import { createCallBook, type Summary } from "./book.ts";
import { type Call, type ClientOptions, openClient, prepare, work } from "./clients.ts";
import { type Criterion, judge } from "./criteria.ts";
import type { TableSize } from "./ledger.ts";
import { type Sample, type Sampler, startSampler } from "./samples.ts";

/** Options of a soak. */
export interface SoakOptions extends Omit<ClientOptions, "port" | "onCall"> {
  readonly minutes: number;
  readonly clients: number;
  readonly size: TableSize;
  readonly gateways: number;
  /** Number of restarts, evenly over the time. */
  readonly restarts: number;
  /** Options of the gateways, `--root` among them. */
  readonly gatewayOptions: readonly string[];
  /** The root, if it is a directory. */
  readonly directory: string | undefined;
  /** Options of a gateway on an empty root, with which the table is compared at the end. Default: it is not compared. */
  readonly freshOptions?: readonly string[] | undefined;
}

/** Everything that a soak has found. */
export interface SoakResult {
  readonly criteria: readonly Criterion[];
  readonly calls: Summary;
  readonly kinds: Readonly<Record<string, Summary>>;
  readonly protocols: Readonly<Record<string, Summary>>;
  readonly audit: Audit;
  /** Evenly over the time, as many in any run. */
  readonly samples: readonly Sample[];
  /** A sample for each whole minute. */
  readonly wholeMinutes: readonly Sample[];
  readonly restarts: readonly Restart[];
  readonly besideFresh: BesideFresh | undefined;
  /** Lines of the logs at the level warn: a gateway tells what it has put right. */
  readonly warnings: readonly string[];
}

/** The restart of a gateway, from the signal until its successor serves, in seconds since the start. */
export interface Restart {
  readonly place: number;
  readonly from: number;
  readonly to: number;
}

/** Number of samples in a run of any length. */
const SAMPLES = 120;

/** Time in which the balancer notices that a gateway is leaving. */
const DRAIN_DELAY = ["--drain-delay", "2s"];

/** Lets clients work on gateways that are restarted in turn, then compares the table with what they have written. */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const { clients, gateways, gatewayOptions, freshOptions, protocols } = options;
  const ms = Math.round(options.minutes * 60_000);
  const commandLine = ["serve", ...DRAIN_DELAY, ...gatewayOptions];
  const fleet = await startFleet(Array.from({ length: gateways }, () => commandLine));
  const observer = openClient(protocols[0] as string, fleet.port);
  try {
    const ledgers = await prepare(observer.client, clients, options.size);
    const book = createCallBook(protocols);
    const [often, byMinute] = [startSampler(options.directory), startSampler(options.directory)];
    const onCall = (call: Call) => {
      for (const { note } of [book, often, byMinute]) note(call);
    };
    const end = AbortSignal.timeout(ms);
    const [samples, wholeMinutes, { restarts, endings }] = await Promise.all([
      takeSamples(fleet, often, ms / SAMPLES, SAMPLES),
      takeSamples(fleet, byMinute, 60_000, Math.floor(options.minutes)),
      restartInTurn(fleet, ms, options.restarts),
      work({ ...options, port: fleet.port, onCall }, ledgers, end),
    ]);
    const onLateCall = ({ outcome, reason }: Call) => {
      if (outcome !== "right") console.error(`beside a fresh table: ${outcome}: ${reason}`);
    };
    const besideFresh =
      freshOptions && (await compare({ ...options, onCall: onLateCall }, { fleet, ledgers }, freshOptions));
    const found = await audit(observer.client, ledgers);
    const allEndings = [...endings, ...(await fleet.stop())];
    const [troubles, warnings] = [allEndings.flatMap(troublesOf), allEndings.flatMap(warningsOf)];
    const [calls, kinds, byProtocol] = [book.total(), book.byKind(), book.byProtocol()];
    const criteria = judge({ calls, protocols: byProtocol, audit: found, troubles });
    return {
      criteria,
      calls,
      kinds,
      protocols: byProtocol,
      audit: found,
      samples,
      wholeMinutes,
      restarts,
      besideFresh,
      warnings,
    };
  } finally {
    observer.close();
    fleet.close();
  }
}

/** Compares a table with a fresh one of the size that it had at the start. */
async function compare(
  options: SoakOptions & Pick<ClientOptions, "onCall">,
  old: Side,
  freshOptions: readonly string[],
): Promise<BesideFresh> {
  const fleet = await startFleet([["serve", ...freshOptions]]);
  const observer = openClient(options.protocols[0] as string, fleet.port);
  try {
    const ledgers = await prepare(observer.client, options.clients, options.size);
    return await workBesideFresh(options, { old, fresh: { fleet, ledgers } });
  } finally {
    observer.close();
    fleet.close();
  }
}

async function takeSamples(
  fleet: Fleet,
  sampler: Sampler,
  everyMs: number,
  times: number,
): Promise<Sample[]> {
  const begun = performance.now();
  const samples: Sample[] = [];
  while (samples.length < times) {
    await sleepUntil(begun + (samples.length + 1) * everyMs);
    samples.push(await sampler.take(fleet.pids));
  }
  return samples;
}

async function restartInTurn(
  fleet: Fleet,
  ms: number,
  times: number,
): Promise<{ restarts: Restart[]; endings: Ending[] }> {
  const begun = performance.now();
  const now = () => (performance.now() - begun) / 1000;
  const restarts: Restart[] = [];
  const endings: Ending[] = [];
  for (let time = 0; time < times; time++) {
    await sleepUntil(begun + ((time + 1) * ms) / (times + 1));
    const place = time % fleet.pids.length;
    const from = now();
    endings.push(await fleet.replace(place));
    restarts.push({ place, from, to: now() });
  }
  return { restarts, endings };
}

/** Resolves at a moment of `performance.now`, at once if it has passed. */
function sleepUntil(moment: number): Promise<void> {
  return sleep(Math.max(moment - performance.now(), 0));
}

/** Returns how a gateway ended, unless with code 0, and the errors that it logged. */
function troublesOf({ code, signal, stderr }: Ending): string[] {
  const errors = troublesIn(stderr).filter((line) => !isWarning(line));
  return [...(code === 0 ? [] : [`it ended with ${code ?? signal}`]), ...errors];
}

const warningsOf = ({ stderr }: Ending): string[] => troublesIn(stderr).filter(isWarning);

function isWarning(line: string): boolean {
  return line.startsWith("{") && (JSON.parse(line) as { level: number }).level === WARNING;
}

/** The level of warnings in the log. */
const WARNING = 40;
