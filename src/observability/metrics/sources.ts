import type { BackendFigures, CacheFigures, ConnectionFigures } from "../../namespace/figures.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { HistogramSample, Sample } from "./tallies.ts";

/** Parts of the gateway that keep their own figures, which are read with the metrics. */
export interface Sources {
  /** Adds a backend; the empty text is an only database. */
  watchBackend(database: string, backend: Pick<Backend, "name" | "figures">): void;
  forgetBackend(database: string): void;
  watchConnections(figures: () => ConnectionFigures): void;
  /** Returns the names of the backends. */
  backendNames(): Iterable<Sample>;
  /** Returns a figure of each backend that has figures. */
  ofBackends(read: (figures: BackendFigures) => number): Iterable<Sample>;
  /** Returns figures with names of each backend that has figures. */
  namedOfBackends(read: (figures: BackendFigures) => Readonly<Record<string, number>>): Iterable<Sample>;
  /** Returns a figure of the connections; nothing before the server listens. */
  ofConnections(read: (figures: ConnectionFigures) => number): Iterable<Sample>;
  traffic(): Iterable<Sample>;
  /** Adds the cache of the process; without one, its metrics have no values. */
  watchCache(figures: () => CacheFigures): void;
  ofCache(read: (figures: CacheFigures) => number): Iterable<Sample>;
  namedOfCache(read: (figures: CacheFigures) => Readonly<Record<string, number>>): Iterable<Sample>;
  cacheSeconds(): Iterable<HistogramSample>;
}

/** Creates a set of sources, which is empty. */
export function createSources(): Sources {
  const backends = new Map<string, Pick<Backend, "name" | "figures">>();
  let connections: (() => ConnectionFigures) | undefined;
  let cache: (() => CacheFigures) | undefined;

  return {
    watchBackend: (database, backend) => void backends.set(database, backend),
    forgetBackend: (database) => void backends.delete(database),
    watchConnections(figures) {
      connections = figures;
    },
    *backendNames() {
      for (const [database, { name }] of backends) yield { labels: [database, name], value: 1 };
    },
    *ofBackends(read) {
      for (const [database, figures] of figuresOf(backends))
        yield { labels: [database], value: read(figures) };
    },
    *namedOfBackends(read) {
      for (const [database, figures] of figuresOf(backends)) {
        for (const [name, value] of Object.entries(read(figures))) yield { labels: [database, name], value };
      }
    },
    *ofConnections(read) {
      if (connections !== undefined) yield { labels: [], value: read(connections()) };
    },
    *traffic() {
      if (connections === undefined) return;
      const { received, sent } = connections();
      yield { labels: ["received"], value: received };
      yield { labels: ["sent"], value: sent };
    },
    watchCache(figures) {
      cache = figures;
    },
    *ofCache(read) {
      if (cache !== undefined) yield { labels: [], value: read(cache()) };
    },
    *namedOfCache(read) {
      if (cache === undefined) return;
      for (const [name, value] of Object.entries(read(cache()))) yield { labels: [name], value };
    },
    *cacheSeconds() {
      if (cache === undefined) return;
      for (const [answer, { counts, sum }] of Object.entries(cache().durations))
        yield { labels: [answer], counts, sum, exemplars: [] };
    },
  };
}

function* figuresOf(
  backends: ReadonlyMap<string, Pick<Backend, "figures">>,
): Iterable<readonly [database: string, figures: BackendFigures]> {
  for (const [database, { figures }] of backends) if (figures !== undefined) yield [database, figures()];
}
