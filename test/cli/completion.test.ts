import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { runCommand } from "../support/run-command.ts";
import { startDirectoryServer } from "../support/server.ts";
import { runShell } from "../support/shells.ts";

/** The function of the package bash-completion that the script calls, in as far as it needs it. */
const BASH = `
_get_comp_words_by_ref() { words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=\${words[cword]}; prev=\${words[cword - 1]}; }
compopt() { :; }
source <(lance-gateway completion bash)
ask() { COMP_WORDS=(lance-gateway "$@"); COMP_CWORD=$#; COMPREPLY=(); __lance_gateway_complete; echo "\${COMPREPLY[*]}"; }
`;

test("bash completes commands of a group, options, saved connections and paths of a server", async (t) => {
  const server = await startDirectoryServer();
  t.onTestFinished(() => server.close());
  const environment = { XDG_CONFIG_HOME: server.root };
  const run = (...args: readonly string[]) => runCommand(args, environment);
  await run("context", "add", "nearby", "--uri", `http://127.0.0.1:${server.port}`);
  await run("create", "team");
  const rows = join(server.root, "rows.arrows");
  await writeFile(rows, personStream(people(1)));
  await run("import", rows, "team/people");
  const asked = ["tags cr", "tags create --bra", "ls --context ''", "describe te", "count team/pe"];
  const answers = await runShell("bash", BASH + asked.map((words) => `ask ${words}`).join("\n"), environment);
  assert.deepEqual(answers, ["create", "--branch", "nearby", "team/", "team/people"]);
});
