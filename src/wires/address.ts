import type { RequestAddress } from "../namespace/call/call.ts";

const addresses = new WeakMap<object, RequestAddress>();

/** Stores the address of a request beside its headers, where no client can write it. */
export function setAddress(headers: object, address: RequestAddress): void {
  addresses.set(headers, address);
}

/** Returns the address that the server stored for the request with these headers. */
export function addressOf(headers: object): RequestAddress | undefined {
  return addresses.get(headers);
}
