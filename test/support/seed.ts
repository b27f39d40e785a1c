/**
 * The seed of a test whose input is drawn: the number in an environment variable, a new one for `random`, and 1
 * without it, so that every run of the suite is the same run.
 */
export function seedOf(variable: string): number {
  const given = process.env[variable] ?? process.env["TEST_SEED"] ?? "1";
  const seed = given === "random" ? Date.now() % 1_000_000 : Number(given);
  if (!Number.isSafeInteger(seed))
    throw new Error(`${variable} must be a whole number or "random": ${given}`);
  return seed;
}
