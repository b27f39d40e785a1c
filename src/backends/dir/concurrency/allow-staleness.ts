/**
 * Creates a check that is skipped if the last one began recently. In the second half of that time, a call starts the
 * next check and does not wait for it, so that calls which follow each other do not wait at all.
 *
 * @param maxStalenessMs maximum age of the last check, in milliseconds; 0 checks each time
 * @param isBehind whether a check would certainly find something. Default: nobody knows.
 */
export function allowStaleness(
  check: () => Promise<void>,
  maxStalenessMs: number,
  isBehind: () => boolean = () => false,
): () => Promise<void> {
  if (maxStalenessMs <= 0) return check;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let isRenewing = false;
  async function renew(): Promise<void> {
    const now = performance.now();
    await check();
    checkedAt = Math.max(checkedAt, now);
  }
  return async () => {
    const age = performance.now() - checkedAt;
    if (age > maxStalenessMs || isBehind()) return renew();
    if (age <= maxStalenessMs / 2) return;
    if (isRenewing) return;
    isRenewing = true;
    // A failure shows when a caller has to wait for a check.
    void renew()
      .catch(() => {})
      .finally(() => {
        isRenewing = false;
      });
  };
}
