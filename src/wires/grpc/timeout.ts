import { LanceError } from "../../namespace/errors.ts";

const FORM = /^(\d{1,8})([HMSmun])$/;

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Returns the milliseconds of a `grpc-timeout` header: up to eight digits and a unit.
 *
 * @throws LanceError InvalidInput, for anything else.
 */
export function parseTimeout(header: string): number {
  const [, digits, unit] = FORM.exec(header) ?? [];
  if (digits === undefined || unit === undefined) {
    throw new LanceError("InvalidInput", `grpc-timeout ${JSON.stringify(header.slice(0, 32))} is malformed`);
  }
  return Number(digits) * (UNIT_MS[unit] as number);
}
