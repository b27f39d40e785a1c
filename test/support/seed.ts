/**
 * Returns the seed of a test with random input: the number in an environment variable, or a new one for `random`.
 * Without the variable it is 1, so that every run of the suite has equal input.
 */
export function seedOf(variable: string): number {
  const given = process.env[variable] ?? process.env["TEST_SEED"] ?? "1";
  const seed = given === "random" ? Date.now() % 1_000_000 : Number(given);
  if (!Number.isSafeInteger(seed))
    throw new Error(`${variable} must be a whole number or "random": ${given}`);
  return seed;
}
