import { useEffect, useState } from "preact/hooks";
import type { LanceError } from "../../namespace/errors.ts";
import type { Connection } from "../session/connection.ts";
import { formatSeconds } from "../shell/format.ts";
import { errorOf } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import { Chart } from "./chart.tsx";
import { type Activity, activityBetween, parseMetrics, type Reading } from "./rates.ts";

/** Time between two readings, in milliseconds. */
const INTERVAL_MS = 2_000;
/** Intervals that are kept: ten minutes. */
const MOST_INTERVALS = 300;

type Metrics = Reading | "off";

/** How many calls the gateway answers, how many fail and how long they take. */
export function ActivityPage({ connection }: { connection: Connection }) {
  const [error, setError] = useState<LanceError>();
  const [isOff, setOff] = useState(false);
  const [activities, setActivities] = useState<readonly Activity[]>([]);
  useEffect(() => {
    const controller = new AbortController();
    let before: Reading | undefined;
    const look = async () => {
      const reading = await readMetrics(connection, controller.signal);
      setError(undefined);
      setOff(reading === "off");
      if (reading === "off") return;
      const old = before;
      before = reading;
      if (old !== undefined)
        setActivities((all) => [...all, activityBetween(old, reading)].slice(-MOST_INTERVALS));
    };
    const tick = () =>
      void look().catch((thrown) => {
        if (!controller.signal.aborted) setError(errorOf(thrown));
      });
    tick();
    const timer = setInterval(tick, INTERVAL_MS);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [connection]);
  const times = activities.map(({ at }) => at);
  return (
    <>
      <header class="page-head">
        <h1>Activity</h1>
      </header>
      {error && <ErrorNote error={error} />}
      {isOff && (
        <EmptyNote>The gateway was started with --no-metrics, so that nothing counts its calls.</EmptyNote>
      )}
      {!isOff && activities.length < 2 && error === undefined && <Waiting what="Counting…" />}
      {/* A line takes two readings. */}
      {activities.length > 1 && (
        <>
          <p class="muted">
            {activities.at(-1)?.running} calls are running. The charts begin when this page opens.
          </p>
          <Chart
            title="Calls per second"
            times={times}
            format={perSecond}
            lines={[
              { name: "all", values: activities.map((each) => each.callsPerSecond), colour: "--accent" },
              { name: "failed", values: activities.map((each) => each.errorsPerSecond), colour: "--danger" },
            ]}
          />
          <Chart
            title="Duration of calls"
            times={times}
            format={formatSeconds}
            lines={[
              {
                name: "p50",
                values: activities.map(({ median }) => median ?? null),
                colour: "--accent",
              },
              {
                name: "p99",
                values: activities.map(({ slowest1Percent }) => slowest1Percent ?? null),
                colour: "--second",
              },
            ]}
          />
        </>
      )}
    </>
  );
}

async function readMetrics(connection: Connection, signal: AbortSignal): Promise<Metrics> {
  const response = await connection.fetch("/metrics", { signal });
  if (response.status === 404) return "off";
  if (!response.ok) throw new Error(`the metrics cannot be read: ${response.status}`);
  return { at: Date.now() / 1000, samples: parseMetrics(await response.text()) };
}

function perSecond(rate: number): string {
  return rate >= 100 ? rate.toFixed(0) : rate.toFixed(1);
}
