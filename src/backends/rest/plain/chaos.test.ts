import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "vitest";
import { answer, upstreamOf } from "../../../../test/fixtures/upstreams/plain-rest.ts";
import { createRandom } from "../../../../test/support/random.ts";
import { LateSignal } from "../../../runtime/late-signal.ts";

const REQUESTS = 2_000;
const CALLERS = 40;
const CALLS = 16;
const LONGEST_MS = 10;

test("each answer is that of its request, and no request goes out twice, whatever upstream and callers do", async () => {
  const random = createRandom(1);
  const soon = (work: () => void) => setTimeout(work, random.below(LONGEST_MS));
  const write = (socket: Socket, text: string) => socket.destroyed || socket.write(text);

  function act(socket: Socket, text: string): void {
    const id = /x-request-id: (\S+)/.exec(text)?.[1] ?? "";
    const whole = answer(id.padEnd(random.pick([0, 100, 60_000]), "."));
    const at = whole.indexOf("\r\n\r\n") + 4 + random.below(id.length);
    const ways = [
      () => void write(socket, whole),
      () => void soon(() => write(socket, whole)),
      () => {
        write(socket, whole.slice(0, at));
        soon(() => write(socket, whole.slice(at)));
      },
      () => void write(socket, answer(id, answer("forged"))),
      () => void write(socket, answer(id, "", "keep-alive: timeout=1\r\n")),
      () => void socket.end(whole),
      () => void socket.end(whole.slice(0, at)),
      () => void socket.destroy(),
    ];
    // Most answers leave their connections to further requests.
    random.pick([...ways, ...ways.slice(0, 3), ...ways.slice(0, 3)])();
  }

  const limits = { maxCalls: CALLS, keepAliveMs: 300, connectionAgeMs: 200 };
  const { send, seen } = await upstreamOf((socket, _count, text) => act(socket, text), limits);
  let begun = 0;
  let answered = 0;
  async function call(): Promise<void> {
    while (begun < REQUESTS) {
      const id = `<${++begun}>`;
      const signal = new LateSignal();
      if (random.below(8) === 0) soon(() => signal.abort(new Error("gone")));
      const text = await send({ headers: ["x-request-id", id], signal }).catch(() => undefined);
      if (text === undefined) continue;
      answered += 1;
      assert.equal(text.replace(/\.+$/, ""), `200 ${id}`);
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, call));
  assert.ok(answered > REQUESTS / 2, String(answered));
  const sent = seen.requests.map((text) => /x-request-id: (\S+)/.exec(text)?.[1]);
  assert.equal(new Set(sent).size, sent.length);
});
