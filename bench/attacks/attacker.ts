// Runs one attack in its own process: attacker.ts NAME PORT TABLE. It prints "in flight", and lasts until it is killed.
import { ATTACKS } from "./table.ts";

const [name = "", port, table = ""] = process.argv.slice(2);
// A victim that cuts attackers off causes errors; the attack continues.
process.on("uncaughtException", () => {});
process.on("unhandledRejection", () => {});
await ATTACKS[name]?.launch({ port: Number(port), table });
process.stdout.write("in flight\n");
setInterval(() => {}, 1_000);
