import type * as Library from "@cedar-policy/cedar-wasm/nodejs";

/** The library that evaluates policies. */
export type Cedar = typeof Library;

/** Loads the library, which takes some 20 ms and 16 MiB of memory, so that only its users pay for it. */
export async function loadCedar(): Promise<Cedar> {
  return await import("@cedar-policy/cedar-wasm/nodejs");
}

/** Returns what the library says about a mistake, as a single line. */
export function textOf({ message, help }: Library.DetailedError, text = ""): string {
  return [message, help ? ` (${help})` : "", text].join("").replaceAll(/\s+/g, " ");
}
