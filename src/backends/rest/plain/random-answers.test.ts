import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "vitest";
import { REQUEST, upstreamOf } from "../../../../test/fixtures/upstreams/plain-rest.ts";
import {
  MAX_ANSWER_BYTES,
  play,
  type RandomAnswer,
  randomAnswer,
} from "../../../../test/fixtures/upstreams/random-rest-answers.ts";
import { createRandom, type Random } from "../../../../test/support/random.ts";
import { seedOf } from "../../../../test/support/seed.ts";
import { LateSignal } from "../../../runtime/late-signal.ts";
import type { UpstreamFailure } from "../transport/transport.ts";
import { createHttpTransport } from "../transport/undici-transport.ts";

const ROUNDS = Number(process.env["PLAIN_ROUNDS"] ?? 25);
/** Requests after each other, each time several at once. */
const WAVES = 3;
const CALLS = 3;

const BODIES = ["{}", "", "é\ud83d\ude00", '"\ud800"', "x".repeat(70_000)];
const TARGETS = [
  "/v1/table/t/describe",
  "/v1/table/t$%24/describe?a=b&&c",
  "/v1/a b",
  "/v1/é",
  "/",
  "*",
  "/#x",
];
const HEADERS = [
  ...["x-api-key: a", "x-tab: a\tb", "x-empty: ", "x-latin: é", "x-line: a\nb", "x-nul: \0", "te: trailers"],
  ...["expect: 100-continue", "x: \u20ac", "x y: a", "x-api-key: b"],
];

/** A request, and what the upstream answers to it. */
interface Exchange {
  readonly mark: string;
  readonly request: {
    readonly method: string;
    readonly target: string;
    readonly body: string | undefined;
    readonly headers: string[];
  };
  readonly answer: RandomAnswer;
}

function randomExchange(random: Random, mark: string, mayBeOdd: boolean): Exchange {
  const chance = (one: number) => random.below(one) === 0;
  const isPost = !chance(3);
  const headers = ["x-mark", mark, "content-type", "application/json"];
  if (chance(6)) headers.push(...random.pick(HEADERS).split(": "));
  const request = {
    method: isPost ? "POST" : "GET",
    target: chance(6) ? random.pick(TARGETS) : (TARGETS[0] as string),
    body: isPost ? random.pick(BODIES) : undefined,
    headers,
  };
  return { mark, request, answer: randomAnswer(random, mark, mayBeOdd) };
}

test("random requests and answers over plain connections are as those over undici", async () => {
  const random = createRandom(seedOf("PLAIN_SEED"));
  let exchanges = new Map<string, Exchange>();
  const { uri, seen } = await upstreamOf((socket, _count, text) => {
    const mark = /^x-mark: (.*)\r$/m.exec(text)?.[1] ?? "";
    const { answer } = exchanges.get(mark) as Exchange;
    if (answer.closes) closing.push(new Promise((resolve) => socket.on("close", resolve)));
    void play(answer, socket as Socket);
  });
  let closing: Promise<unknown>[] = [];

  /** Makes the requests in one of the ways, and returns what each has become, and the requests as they arrived. */
  async function outcomesOf(waves: readonly (readonly Exchange[])[], more: readonly string[]) {
    const transport = createHttpTransport({ uri, maxAnswerBytes: MAX_ANSWER_BYTES });
    const outcomes: unknown[] = [];
    for (const wave of waves) {
      closing = [];
      const sent = wave.map(({ request }) => {
        const headers = [...request.headers, ...more];
        return transport.send({ ...REQUEST, ...request, headers, signal: new LateSignal() }).then(
          ({ status, headers, body }) => ({ status, headers: { ...headers }, body: body.toString("utf8") }),
          ({ kind, message }: UpstreamFailure) => ({ kind, message }),
        );
      });
      outcomes.push(...(await Promise.all(sent)));
      // A request on a connection that is about to close may fail: chance would decide.
      await Promise.all(closing);
    }
    await transport.close();
    return { outcomes, requests: seen.requests.splice(0).map(comparable).sort() };
  }

  for (let round = 0; round < ROUNDS; round++) {
    // Behind an odd answer, the transport makes all requests over undici for a while.
    const oddFrom = random.below(WAVES);
    const waves = Array.from({ length: WAVES }, (_, wave) =>
      Array.from({ length: CALLS }, (_, call) =>
        randomExchange(random, `${round} ${wave} ${call}`, wave >= oddFrom),
      ),
    );
    const all = waves.flat();
    exchanges = new Map(all.map((exchange) => [exchange.mark, exchange]));
    const plain = await outcomesOf(waves, []);
    // Names in capitals are left to undici.
    const other = await outcomesOf(waves, ["X-Undici", "1"]);
    for (const [index, exchange] of all.entries()) {
      assert.deepEqual(plain.outcomes[index], other.outcomes[index], JSON.stringify(exchange, null, 1));
    }
    assert.deepEqual(plain.requests, other.requests);
  }
});

/** Returns the parts of a request that have a meaning. */
function comparable(text: string): string {
  const [head = "", body] = text.split("\r\n\r\n", 2);
  const [line, ...headers] = head.split("\r\n");
  const own = headers.filter((header) => !/^x-undici:/i.test(header)).map((header) => header.toLowerCase());
  return JSON.stringify([line, own.sort(), body]);
}
