/** Units of `grpc-timeout` with their milliseconds, the finest first. */
const UNITS = [
  ["m", 1],
  ["S", 1_000],
  ["M", 60_000],
  ["H", 3_600_000],
] as const;
/** A timeout has at most eight digits. */
const TOO_LONG = 1e8;

/** Returns the header `grpc-timeout` for a number of milliseconds, in the finest unit whose digits suffice. */
export function timeoutHeader(milliseconds: number): string {
  const [unit, factor] = UNITS.find(([, factor]) => milliseconds / factor < TOO_LONG) ?? UNITS[3];
  return `${Math.ceil(milliseconds / factor)}${unit}`;
}
