import { test } from "vitest";
import { repeats } from "../support/repeats.ts";
import { restartUnderCalls } from "../support/rolling-restart.ts";

const { RESTART_WORKERS: workers = "2", RESTART_DELAY: drainDelay = "1s" } = process.env;

test("a rolling restart behind a balancer fails no call of clients that never retry", (t) =>
  restartUnderCalls(t, {
    clients: repeats("RESTART_CLIENTS", 10),
    restarts: repeats("RESTARTS", 1),
    workers,
    drainDelay,
  }));
