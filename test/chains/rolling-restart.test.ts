import { test } from "vitest";
import { restartUnderCalls } from "../support/rolling-restart.ts";

test("a rolling restart loses no request of 200 clients that keep their connections, on all protocols", (t) =>
  restartUnderCalls(t, { clients: 200, restarts: 2, workers: "1", drainDelay: "5s" }));
