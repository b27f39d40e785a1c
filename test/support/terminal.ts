import { spawnSync } from "node:child_process";
import { MAIN, NODE } from "./node-command.ts";

/** Runs a command in a terminal, and types each of the keys once the text before it has appeared. */
const TERMINAL = `
import json, os, pty, select, sys, time
keys, command = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown, seen = b"", 0
def read(limit):
    global shown
    if not select.select([terminal], [], [], limit)[0]:
        return False
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        return None
    shown += piece
    return None if piece == b"" else True
for text, typed in keys:
    end = time.time() + 60
    while shown.find(text.encode(), seen) < 0 and time.time() < end:
        if read(1) is None:
            break
    seen = max(shown.find(text.encode(), seen), 0) + len(text)
    os.write(terminal, typed.encode())
while read(30):
    pass
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

/** Keys, each with the text that the terminal shows before they are typed. */
export type Typed = readonly (readonly [shown: string, keys: string])[];

/** Runs the program in a terminal and types into it; returns what it shows, and its exit code. */
export function runInTerminal(
  args: readonly string[],
  keys: Typed,
  environment: Readonly<Record<string, string>>,
): { readonly shown: string; readonly code: number | null } {
  const [node, ...flags] = NODE;
  const command = ["-c", TERMINAL, JSON.stringify(keys), node, ...flags, MAIN, ...args];
  const env = { ...process.env, ...environment };
  const { stdout, status } = spawnSync("python3", command, { env, encoding: "utf8" });
  return { shown: stdout, code: status };
}
