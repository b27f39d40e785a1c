// npm run bench -- NAME [options]: runs one comparison and prints its figures.
const suites: Readonly<Record<string, () => Promise<{ run(args: readonly string[]): Promise<void> }>>> = {
  against: () => import("./against.ts"),
  attacks: () => import("./attacks.ts"),
  bucket: () => import("./bucket.ts"),
  catalog: () => import("./catalog.ts"),
  cluster: () => import("./cluster.ts"),
  cores: () => import("./cores.ts"),
  data: () => import("./data.ts"),
  faults: () => import("./faults.ts"),
  fleet: () => import("./fleet.ts"),
  flight: () => import("./flight.ts"),
  "grpc-clients": () => import("./grpc-clients.ts"),
  loop: () => import("./loop.ts"),
  memory: () => import("./memory.ts"),
  proxy: () => import("./proxy.ts"),
  remote: () => import("./remote.ts"),
  "rows-here": () => import("./rows-here.ts"),
  secured: () => import("./secured.ts"),
  sight: () => import("./sight.ts"),
  soak: () => import("./soak.ts"),
  upkeep: () => import("./upkeep.ts"),
  wires: () => import("./wires.ts"),
};

const [name = "", ...args] = process.argv.slice(2);
const suite = suites[name];
if (suite === undefined) {
  console.error(`bench: name one of ${Object.keys(suites).join(", ")}`);
  process.exit(2);
}
await (await suite()).run(args);
