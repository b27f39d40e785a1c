// The script of a page that works with the gateway from another origin and reports to the server it came from.
import { connect } from "../../../src/client/browser.ts";
import { session } from "./session.ts";

const { gateway } = Object.fromEntries(new URLSearchParams(location.search));
const lines: string[] = [];
try {
  for (const kind of ["rest", "connect"]) {
    const ns = await connect(kind, { uri: gateway, "headers.authorization": "Bearer x" });
    lines.push(`${kind}: ${await session(ns, `page-${kind}`)}`);
  }
} catch (error) {
  lines.push(String((error as Error).stack));
}
await fetch("/report", { method: "POST", body: lines.join("\n") });

declare const location: { readonly search: string };
