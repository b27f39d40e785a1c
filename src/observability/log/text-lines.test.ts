import { describe, expect, test } from "vitest";
import { createLog } from "./log.ts";
import { formatLines, lineText } from "./text-lines.ts";

function textOf(write: (log: ReturnType<typeof createLog>) => void): string {
  let text = "";
  const to = {
    write(line: string) {
      text += line;
    },
  };
  write(createLog("debug", ["secret-word"], formatLines("text", -1, to)));
  return text;
}

describe("the log for people", () => {
  test("has the time, the level, the message and the fields in a line", () => {
    const text = textOf((log) =>
      log.info({ port: 2333, address: "127.0.0.1", of: "two words" }, "listening"),
    );
    expect(text).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} INFO {2}listening port=2333 address=127\.0\.0\.1 of="two words"\n$/,
    );
  });

  test("shows errors below their line, without secrets", () => {
    const text = textOf((log) => log.error({ err: new Error("no secret-word here") }, "it failed"));
    expect(text).toMatch(/ ERROR it failed\n {4}\S/);
    expect(text).not.toContain("secret-word");
  });

  test("passes no commands to the terminal, and marks troubles with colors", () => {
    const line = JSON.stringify({ level: 40, time: 0, msg: "a\u001b[2Jb", what: "\u009b1m\n" });
    expect(lineText(line, (_, text) => text)).toMatch(/WARN {2}a\\u001b\[2Jb what=/);
    expect(lineText(line, (_, text) => text).slice(0, -1)).not.toMatch(/\p{Cc}/u);
    expect(lineText(line, (color, text) => `<${color}>${text}`)).toContain("<yellow>WARN ");
  });

  test("is for terminals, and others get JSON unless asked", () => {
    const to = { write: () => {} };
    expect(formatLines("auto", -1, to)).toBe(to);
    expect(formatLines("json", -1, to)).toBe(to);
    expect(formatLines("text", -1, to)).not.toBe(to);
  });
});
