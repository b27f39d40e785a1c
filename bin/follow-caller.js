// Plain JavaScript for Node 20: scripts/run.mjs uses it before anything else is there.
import { readFileSync } from "node:fs";

/**
 * Signal for a process that has lost its caller. It ends programs that do not know it, and the gateway drains; SIGHUP has another meaning
 * for servers, and a second SIGTERM would cut a drain short.
 */
export const CALLER_GONE = "SIGUSR2";

const INTERVAL_MS = 250;
const SHELL = /^(?:ba|da|a|z)?sh$/;

/**
 * Calls back once when this process has lost its caller: the process that started it or, when that is a shell, the one
 * that started the shell. A caller that is killed cannot pass a signal on.
 */
export function followCaller(onGone) {
  const callers = callersNow();
  const timer = setInterval(() => {
    if (callersNow() === callers) return;
    clearInterval(timer);
    onGone();
  }, INTERVAL_MS);
  timer.unref();
}

function callersNow() {
  const { ppid } = process;
  const [, name = "", above] = /^\d+ \((.*)\) \S (\d+)/s.exec(statOf(ppid)) ?? [];
  return SHELL.test(name) ? `${ppid} ${above}` : `${ppid}`;
}

/** What Linux says of a process; nothing elsewhere, where the shell alone is followed. */
function statOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return "";
  }
}
