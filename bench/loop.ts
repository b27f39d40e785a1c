// The event loop: starts a gateway for each of the calls that cost much, and measures how long its loop is held at a time.
// npm run bench -- loop [CALL ...] [--tables N] [--rounds N] [--before CHECKOUT]
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createGrpcClient } from "../test/support/grpc-client.ts";
import { type LoopCall, type LoopClients, loopCalls, type Send } from "./loop/calls.ts";
import { grpcCalls } from "./loop/grpc-calls.ts";
import { startUpstream } from "./loop/upstream.ts";
import { upstreamCalls } from "./loop/upstream-calls.ts";
import type { LoopFigures } from "./loop/watch.ts";
import { type Figures, startFigures } from "./support/figures.ts";
import { startPreloaded } from "./support/preloaded.ts";
import { roundsOf } from "./support/results.ts";

const HERE = join(import.meta.dirname, "..");
const OPTIONS = {
  tables: { type: "string", default: "1000000" },
  rounds: { type: "string", default: "3" },
  before: { type: "string" },
} as const;

/** The longest time for which a call may hold the loop, in milliseconds. */
const MOST_MS = 50;

/** Measures all calls, or the named ones. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  const calls: Record<string, LoopCall> = {
    ...loopCalls(Number(values.tables)),
    ...grpcCalls,
    ...upstreamCalls,
  };
  const unknown = positionals.find((name) => calls[name] === undefined);
  if (unknown !== undefined) throw new Error(`there is no call ${unknown}, only ${Object.keys(calls)}`);
  const checkouts = values.before === undefined ? { now: HERE } : { before: values.before, now: HERE };
  const sides = Object.keys(checkouts);
  const named = (side: string) => (sides.length === 1 ? "" : `, ${side}`);
  const heads = sides.flatMap((side) => [`longest${named(side)}, ms`, `computing${named(side)}, ms`]);
  const figures = startFigures("call", ...heads);
  for (const name of positionals.length > 0 ? positionals : Object.keys(calls)) {
    const call = calls[name] as LoopCall;
    const rounds = Object.fromEntries(sides.map((side) => [side, [] as LoopFigures[]]));
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const [side, checkout] of Object.entries(checkouts)) {
        rounds[side]?.push(await measure(checkout, call));
      }
    }
    const found = Object.values(rounds).flatMap((each) => [
      roundsOf(each.map(({ held }) => held)),
      roundsOf(each.map(({ computed }) => computed)),
    ]);
    const of = found.at(-2)?.median ?? Number.NaN;
    figures.add([call.title, ...found], { of, most: MOST_MS, unit: "ms" });
  }
  return [figures];
}

async function measure(checkout: string, call: LoopCall): Promise<LoopFigures> {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const root = join(folder, "data");
  await mkdir(root);
  try {
    await call.fill?.(root);
    const upstream = call.upstream && (await startUpstream(call.upstream()));
    const backend = upstream ? ["--backend", "rest", "--uri", upstream.uri] : ["--root", folder];
    const gateway = await startPreloaded<LoopFigures>(checkout, "loop/watch.ts", backend);
    const send: Send = (path, body) => post(gateway.port, path, body);
    const grpc = createGrpcClient(gateway.port);
    try {
      // Modules that are loaded at their first use count for no call.
      await send("namespace/$/table/list?limit=1", {});
      await grpc.client.listTables({ id: [], limit: 1 });
      await call.prepare?.(send, root);
      upstream?.open();
      await gateway.figures();
      const connect: LoopClients["connect"] = (method, codec) => callConnect(gateway.port, method, codec);
      await call.run(send, { grpc: grpc.client, connect });
      return await gateway.figures();
    } finally {
      grpc.close();
      await gateway.stop();
      upstream?.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function callConnect(port: number, method: string, codec: "proto" | "json"): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/lance.namespace.v1.LanceNamespaceService/${method}`, {
    method: "POST",
    headers: { "content-type": `application/${codec}`, "accept-encoding": "identity" },
    body: codec === "json" ? "{}" : new Uint8Array(),
  });
  const bytes = await answer.arrayBuffer();
  if (!answer.ok)
    throw new Error(`${method}: ${answer.status} ${Buffer.from(bytes).toString().slice(0, 300)}`);
}

async function post(port: number, path: string, body: object | Uint8Array): Promise<void> {
  const isArrow = body instanceof Uint8Array;
  const answer = await fetch(`http://127.0.0.1:${port}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": isArrow ? "application/vnd.apache.arrow.stream" : "application/json" },
    body: isArrow ? new Uint8Array(body) : JSON.stringify(body),
  });
  const bytes = await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${Buffer.from(bytes).toString().slice(0, 300)}`);
}
