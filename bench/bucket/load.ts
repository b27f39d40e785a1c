const LOAD_MS = 1_500;

/** Calls over many connections; a refused call does not count for the rate. */
export async function loadOf(connections: number, call: (connection: number) => Promise<unknown>) {
  const started = performance.now();
  let [calls, refused] = [0, 0];
  const worker = async (_: unknown, connection: number) => {
    while (performance.now() - started < LOAD_MS) {
      calls += 1;
      await call(connection).catch(() => {
        refused += 1;
      });
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return { calls, refused, perSecond: ((calls - refused) * 1000) / (performance.now() - started) };
}
