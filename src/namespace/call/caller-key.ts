import { hash } from "node:crypto";
import type { Call } from "./call.ts";
import { isRefused } from "./reception.ts";

/** Returns a text that is equal for all calls of a caller; without one, for all calls from its address. */
export function callerKey({ principal, peer }: Pick<Call, "principal" | "peer">): string {
  return principal === undefined ? addressCaller(addressKey({ peer })) : `${principal.by} ${principal.name}`;
}

/** Returns the {@link callerKey} of callers without a name, by the key of their address. */
export function addressCaller(key: string): string {
  return `address ${key}`;
}

/** Returns the {@link callerKey} of a call whose message is not read yet. */
export function senderKey({ reception, peer }: Pick<Call, "reception" | "peer">): string {
  return callerKey({ principal: isRefused(reception) ? undefined : reception?.principal, peer });
}

/**
 * Returns a text that is equal for all calls from an address. IPv6 networks of 64 bits count as a single address, because each
 * machine of such a network may take any address in it.
 */
export function addressKey({ peer = "" }: Pick<Call, "peer">): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(peer)?.[1];
  if (mapped !== undefined) return mapped;
  if (!peer.includes(":")) return peer;
  const [head = "", tail] = peer.split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  const all = [...groups, ...Array<string>(Math.max(0, zeros)).fill("0"), ...after];
  return all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}

/**
 * Returns a text that is equal for all calls of a caller, wherever they come from. Calls of callers whom the gateway does not know belong together
 * if they carry the same credentials.
 */
export function ownerKey({ principal, identity }: Pick<Call, "principal" | "identity">): string {
  if (principal !== undefined) return JSON.stringify([principal.by, principal.name]);
  return hash("sha256", JSON.stringify([identity.apiKey ?? null, identity.authToken ?? null]), "base64url");
}
