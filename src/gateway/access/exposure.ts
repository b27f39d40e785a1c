import { lookup } from "node:dns/promises";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { isLoopbackAddress } from "../../runtime/loopback.ts";

/** Options that say where the gateway listens. */
type Place = Pick<ServeOptions, "host"> & Partial<Pick<ServeOptions, "socketPath">>;

/**
 * Refuses to listen where other machines can connect, if callers need not prove who they are and the operator has not said that this
 * is intended.
 *
 * @throws UsageError
 */
export async function refuseStrangers({
  auth,
  insecure,
  ...place
}: Place & Pick<ServeOptions, "auth" | "insecure">): Promise<void> {
  if (auth.length > 0 || insecure || (await isLocal(place))) return;
  const { host } = place;
  throw new UsageError(
    `--host ${host} can be reached from other machines, where everyone could do everything: use --auth api-key, or --insecure`,
  );
}

/** Whether credentials travel in the clear between machines. */
export async function travelsInTheClear({
  tlsCert,
  ...place
}: Place & Partial<Pick<ServeOptions, "tlsCert">>): Promise<boolean> {
  return tlsCert === undefined && !(await isLocal(place));
}

async function isLocal({ host, socketPath }: Place): Promise<boolean> {
  return socketPath !== undefined || isLoopback(host);
}

/** Whether a host names this machine alone. A name that cannot be resolved fails when the gateway listens. */
async function isLoopback(host: string): Promise<boolean> {
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.every(({ address }) => isLoopbackAddress(address));
}
