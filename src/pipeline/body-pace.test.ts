import assert from "node:assert/strict";
import { setImmediate as settled } from "node:timers/promises";
import { describe, it } from "vitest";
import type { Call } from "../namespace/call.ts";
import { createBodyPace, paceUploads, TURN_BYTES } from "./body-pace.ts";
import type { OperationRequest } from "./interceptor.ts";

const PIECE = 64 * 1024;

/** Returns a pace whose turns the test ends, and bodies that count the passed bytes. */
function fixture() {
  const turns: (() => void)[] = [];
  const pace = createBodyPace(() => new Promise<void>((resolve) => turns.push(resolve)));
  let passed = 0;
  return {
    pace,
    async body(pieces: number) {
      for (let piece = 0; piece < pieces; piece++) {
        await pace.pass(PIECE);
        passed += PIECE;
      }
    },
    /** Ends the turn and returns the bytes that passed in it. */
    async turn() {
      await settled();
      const bytes = passed;
      passed = 0;
      for (const end of turns.splice(0)) end();
      return bytes;
    },
  };
}

describe("createBodyPace", () => {
  it("passes a bounded number of bytes in each turn, however many bodies there are", async () => {
    const { body, turn } = fixture();
    const bodies = Array.from({ length: 20 }, () => body(16));
    const turns: number[] = [];
    for (let bytes = await turn(); bytes > 0; bytes = await turn()) turns.push(bytes);
    await Promise.all(bodies);
    assert.deepEqual(new Set(turns), new Set([TURN_BYTES]));
    assert.equal(turns.length, (20 * 16 * PIECE) / TURN_BYTES);
  });

  it("lets every body go on in its turn", async () => {
    const { pace, turn } = fixture();
    const passed: number[] = [];
    const bodies = [0, 1, 2].map(async (body) => {
      for (let piece = 0; piece < 3; piece++) {
        await pace.pass(TURN_BYTES);
        passed.push(body);
      }
    });
    while (passed.length < 9) await turn();
    await Promise.all(bodies);
    assert.deepEqual(passed, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
  });

  it("passes one piece in a turn while connections are accepted, and as many as before once none comes", async () => {
    const { pace, body, turn } = fixture();
    pace.noteConnection();
    const bodies = [body(40), body(40)];
    assert.equal(await turn(), PIECE);
    pace.noteConnection();
    assert.equal(await turn(), PIECE);
    assert.equal(await turn(), PIECE);
    assert.equal(await turn(), TURN_BYTES);
    while ((await turn()) > 0);
    await Promise.all(bodies);
  });

  it("rests when nothing passes", async () => {
    let turns = 0;
    const pace = createBodyPace(async () => {
      turns += 1;
    });
    await pace.pass(PIECE);
    await settled();
    assert.equal(turns, 1);
  });
});

describe("paceUploads", () => {
  it("passes a body on completely, and other requests unchanged", async () => {
    const chain = paceUploads(createBodyPace());
    const pieces = [new Uint8Array(TURN_BYTES), Uint8Array.of(1), Uint8Array.of(2)];
    const upload = {
      kind: "upload",
      data: (async function* () {
        yield* pieces;
      })(),
    };
    const passed: Uint8Array[] = [];
    await chain({} as Call, upload as unknown as OperationRequest, async (_, request) => {
      if (request.kind === "upload") for await (const piece of request.data) passed.push(piece);
      return undefined as never;
    });
    assert.deepEqual(passed, pieces);
    const unary = { kind: "unary" } as OperationRequest;
    await chain({} as Call, unary, async (_, request) => {
      assert.equal(request, unary);
      return undefined as never;
    });
  });
});
