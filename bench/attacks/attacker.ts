// Runs one attack in a process of its own: attacker.ts NAME PORT TABLE. It says "under way", and lasts until it is killed.
import { ATTACKS } from "./table.ts";

const [name = "", port, table = ""] = process.argv.slice(2);
// A victim that cuts attackers off makes errors, which are no reason to stop.
process.on("uncaughtException", () => {});
process.on("unhandledRejection", () => {});
await ATTACKS[name]?.launch({ port: Number(port), table });
process.stdout.write("under way\n");
setInterval(() => {}, 1_000);
