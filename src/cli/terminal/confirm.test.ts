import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, it } from "vitest";
import { confirm } from "./confirm.ts";

function terminal(isTTY = true) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = Object.assign(new PassThrough(), { isTTY });
  return { input, output };
}

describe("confirm", () => {
  for (const answer of ["y", "yes", "Y"])
    it(`goes on after the answer ${answer}`, async () => {
      const streams = terminal();
      streams.input.write(`${answer}\n`);
      await confirm("drop the table t", undefined, streams);
      streams.output.end();
      assert.match(await text(streams.output), /drop the table t\? \[y\/N\] /);
    });

  for (const answer of ["n\n", "\n", "yesterday\n", undefined])
    it(`ends after ${JSON.stringify(answer)}`, async () => {
      const streams = terminal();
      if (answer === undefined) streams.input.end();
      else streams.input.write(answer);
      await assert.rejects(confirm("drop the table t", undefined, streams), /nothing was done; --yes/);
    });

  it("does not ask a script", async () => {
    await confirm("drop the table t", undefined, terminal(false));
  });

  it("ends by the signal of the command", async () => {
    const controller = new AbortController();
    const asked = confirm("drop the table t", controller.signal, terminal());
    controller.abort("SIGINT");
    await assert.rejects(asked);
  });
});
