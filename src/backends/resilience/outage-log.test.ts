import assert from "node:assert/strict";
import pino from "pino";
import { test } from "vitest";
import { createOutageLog } from "./outage-log.ts";

test("logs the begin and the end of each upstream's outage, however often it is asked", () => {
  const lines: { level: number; upstream: string }[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const outages = createOutageLog(log);
  outages.answered("a");
  outages.failed("a", new Error("away"));
  outages.failed("b", new Error("away"));
  outages.failed("a", new Error("away"));
  outages.answered("a");
  outages.answered("a");
  outages.failed("a", new Error("away"));
  const { warn, info } = pino.levels.values;
  assert.deepEqual(
    lines.map(({ level, upstream }) => [level, upstream]),
    [
      [warn, "a"],
      [warn, "b"],
      [info, "a"],
      [warn, "a"],
    ],
  );
});
