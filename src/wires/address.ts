import type { RequestAddress } from "../namespace/call.ts";

const addresses = new WeakMap<object, RequestAddress>();

/** Keeps what the address of a request says beside its headers, where no client can write. */
export function setAddress(headers: object, address: RequestAddress): void {
  addresses.set(headers, address);
}

/** What the server has kept for the request with these headers. */
export function addressOf(headers: object): RequestAddress | undefined {
  return addresses.get(headers);
}
