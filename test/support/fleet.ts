import { type Balancer, startBalancer } from "./balancer.ts";
import { type Ending, type Program, startProgram } from "./program.ts";

/** Gateways behind a balancer. */
export interface Fleet {
  /** The port of the balancer. */
  readonly port: number;
  /** The process ids of the gateways, by their places. */
  readonly pids: readonly number[];
  /** Ends the gateway at a place by SIGTERM, then starts another one there; resolves when the balancer uses it. */
  replace(place: number): Promise<Ending>;
  /** Ends all gateways by SIGTERM. */
  stop(): Promise<readonly Ending[]>;
  /** Cuts everything off that still runs. */
  close(): void;
}

/** Starts gateways. @param commandLines the arguments of each, to which a free port is added */
export async function startFleet(commandLines: readonly (readonly string[])[]): Promise<Fleet> {
  const balancer = await startBalancer();
  const members: Member[] = [];
  const close = () => {
    for (const { program } of members) program.child.kill("SIGKILL");
    balancer.close();
  };
  try {
    for (const args of commandLines) members.push(await startMember(balancer, args));
  } catch (error) {
    close();
    throw error;
  }
  return {
    port: balancer.port,
    get pids() {
      return members.map(({ program }) => program.child.pid ?? 0);
    },
    async replace(place) {
      const ending = await stopMember(balancer, members[place] as Member);
      members[place] = await startMember(balancer, commandLines[place] ?? []);
      return ending;
    },
    stop: () => Promise.all(members.map((member) => stopMember(balancer, member))),
    close,
  };
}

interface Member {
  readonly program: Program;
  readonly port: number;
}

async function startMember(balancer: Balancer, args: readonly string[]): Promise<Member> {
  const program = startProgram(...args, "--port", "0");
  const port = await program.listening();
  await balancer.add(port);
  return { program, port };
}

async function stopMember(balancer: Balancer, { program, port }: Member): Promise<Ending> {
  program.child.kill("SIGTERM");
  const ending = await program.ended;
  balancer.remove(port);
  return ending;
}
