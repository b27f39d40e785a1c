import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createProgress, progressText } from "./progress.ts";

describe("progress", () => {
  it("shows the share, the amount and the speed", () => {
    const text = progressText("team/people", 512, 1024, "bytes", 2);
    assert.equal(text, "team/people  [############------------] 50%  512 B of 1.0 KiB  256 B/s");
    assert.equal(progressText("t", 10, undefined, "rows", 1), "t  10 rows  10 rows/s");
    assert.match(progressText("t", 0, 0, "rows", 0), /100%/);
  });

  it("stays within the columns of the terminal", () => {
    const [size, label] = [1023 * 1024 ** 3, `${"space/".repeat(20)}people`];
    for (const columns of [200, 80, 60, 40, 20, 1]) {
      for (const total of [size, undefined]) {
        const text = progressText(label, size - 1, total, "bytes", 0.01, columns);
        assert.ok(text.length < columns, `${text.length} of ${columns}: ${text}`);
      }
    }
    assert.match(
      progressText(label, 5, 10, "rows", 1, 80),
      /^….*people {2}\[#+-+\] 50% {2}5 rows of 10 rows {2}5 rows\/s$/,
    );
  });

  it("draws on a terminal, no more often than eyes can follow, and takes the bar away", () => {
    const written: string[] = [];
    const output = { isTTY: true, write: (text: string) => written.push(text) > 0 };
    const progress = createProgress({ label: "t", total: 10, unit: "rows", output });
    for (let row = 0; row < 10; row++) progress.advance(1);
    progress.end();
    assert.equal(written.length, 2);
    assert.equal(written[1], "\r\u001b[K");
  });

  it("erases all lines onto which a terminal that became narrower wrapped it, and draws nothing after its end", () => {
    const written: string[] = [];
    const output = { isTTY: true, columns: 60, write: (text: string) => written.push(text) > 0 };
    const progress = createProgress({ label: "t", total: 10, unit: "rows", output });
    progress.advance(1);
    output.columns = 20;
    progress.end();
    const lines = Math.ceil(((written[0] as string).length - "\r\u001b[K".length) / 20);
    assert.ok(lines > 1);
    assert.equal(written[1], `\r\u001b[${lines - 1}A\u001b[J`);
    progress.show(5);
    assert.equal(written.length, 2);
  });

  it("draws nothing elsewhere", () => {
    const output = { isTTY: false, write: () => assert.fail("it writes") };
    const progress = createProgress({ label: "t", total: 10, unit: "rows", output });
    progress.advance(5);
    progress.end();
  });
});
