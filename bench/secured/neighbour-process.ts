// Keeps a gateway or a processor busy until its input ends. It prints a line once it does, and what it has done at the end.
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Busy, Done, Sending } from "./neighbour.ts";

/** Length of a stretch of work and the pause after it, in milliseconds. */
const PERIOD_MS = 10;
const HEAD_END = Buffer.from("\r\n\r\n");
const THROTTLED = Buffer.from("HTTP/1.1 429");

const [kind, text = "{}"] = process.argv.slice(2);
const end = new AbortController();
process.stdin.on("end", () => end.abort()).resume();
const done = kind === "spin" ? await spin(JSON.parse(text)) : await send(JSON.parse(text));
console.log(JSON.stringify(done));
process.exit();

/** Computes for a part of the time. */
async function spin({ share }: Busy): Promise<Done> {
  console.log("busy");
  while (!end.signal.aborted) {
    const started = performance.now();
    while (performance.now() - started < share * PERIOD_MS);
    await sleep(PERIOD_MS * (1 - share));
  }
  return { sent: 0, refused: 0 };
}

/** Repeats a request on each connection: at a rate, or as soon as it is answered. It is busy when the gateway refuses, or at once. */
async function send({ port, request, connections, perSecond }: Sending): Promise<Done> {
  const pauseMs = perSecond === undefined ? 0 : (connections * 1000) / perSecond;
  const bytes = Buffer.from(request);
  const counts = { sent: 0, refused: 0 };
  let isBusy = false;
  const note = (isRefused: boolean) => {
    counts.sent += 1;
    if (isRefused) counts.refused += 1;
    if (isBusy || (!isRefused && perSecond === undefined)) return;
    isBusy = true;
    console.log("busy");
  };
  const each = Array.from({ length: connections }, async (_, index) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    for (let due = performance.now() + (index * pauseMs) / connections; !end.signal.aborted; due += pauseMs) {
      const early = due - performance.now();
      if (early > 0) await sleep(early);
      socket.write(bytes);
      note(await isRefused(socket));
    }
    socket.destroy();
  });
  await Promise.race([Promise.all(each), once(end.signal, "abort")]);
  return counts;
}

/** Reads an answer; returns whether it is a refusal. */
async function isRefused(socket: AsyncIterable<Buffer> & NodeJS.EventEmitter): Promise<boolean> {
  let rest: Buffer = Buffer.alloc(0);
  for (;;) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const head = rest.indexOf(HEAD_END);
    if (head < 0) continue;
    const length = Number(/content-length: (\d+)/i.exec(rest.toString("latin1", 0, head))?.[1] ?? 0);
    if (rest.length >= head + HEAD_END.length + length)
      return rest.compare(THROTTLED, 0, THROTTLED.length, 0, THROTTLED.length) === 0;
  }
}
