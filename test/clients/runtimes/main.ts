// Runs the session over the connections that its arguments name: main.ts LABEL KIND=PLACE...
import { connect } from "../../../src/client/index.ts";
import { session } from "./session.ts";

const [label, ...places] = process.argv.slice(2);
for (const argument of places) {
  const [kind = "", place = ""] = argument.split(/=(.*)/s);
  const ns = await connect(kind, kind === "grpc" ? { address: place } : { uri: place });
  process.stdout.write(`${kind}: ${await session(ns, `${label}-${kind}`)}\n`);
  await ns.close();
}
process.exit(0);
