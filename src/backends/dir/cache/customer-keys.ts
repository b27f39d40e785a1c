/** Beginning of the headers of encryption with a key that only the client has (SSE-C). */
const CUSTOMER_KEY = "x-amz-server-side-encryption-customer-";

/** Whether a request or an answer is about an object that only a reader with its key may have, so that it is not kept. */
export function hasCustomerKey(headers: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(headers).some((name) => name.startsWith(CUSTOMER_KEY));
}
