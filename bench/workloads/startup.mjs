import { CLI, missingCli, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { missingShell, starts, startsTable } from "../lib/starts.mjs";

export const title = "Start of the command";
export const start = "in every figure";
export const shows =
  "CPU of a process that starts, prints and exits, against `node -e 0` on the same Node; and of importing an entry point, " +
  "against one of an empty file. Newer majors start in less time themselves, so the same command has a higher " +
  "ratio there. It does not show a cold disk.";

/** Without a login and without a network: nothing is asked. The goals are those of Node 20. */
const COMMANDS = [
  { words: ["--version"], goal: 1.3 },
  { words: ["--help"], goal: 1.3 },
  { words: ["devices", "list", "--help"], goal: 1.9 },
  { words: ["devices", "list", "--unknown"], codes: [2], goal: 1.9 },
  { words: ["wrong-word"], codes: [2], goal: 1.9 },
  { words: ["config", "list"], goal: 1.9 },
  { words: ["status", "--json"], codes: [0, 4], goal: 2.2 },
];

const EMPTY = new URL("../sides/empty.mjs", import.meta.url).href;
/** The entry points, against a file that has nothing. The goals are those of Node 24, whose own start is the shortest. */
const ENTRIES = { agentauth: 2.3, "agentauth/node": 3, "agentauth/resource-server": 2.2, "agentauth/sandbox": 3.6 };

export function unavailable() {
  return missingShell() ?? missingCli();
}

export async function measure({ quick }) {
  const rounds = quick ? 1 : 7;
  return withHome(async (env) => {
    const sides = [
      starts("node -e 0", ["-e", "0"], env),
      ...COMMANDS.map(({ words, ...options }) => starts(`agentauth ${words.join(" ")}`, [CLI, ...words], env, options)),
    ];
    const module = (text) => ["--input-type=module", "-e", text];
    const imports = [
      starts("import an empty file", module(`import ${JSON.stringify(EMPTY)}`), env),
      ...Object.entries(ENTRIES).map(([name, goal]) =>
        starts(`import "${name}"`, module(`import ${JSON.stringify(name)}`), env, { goal }),
      ),
    ];
    return [
      startsTable(sides, await compare(sides, rounds), rounds),
      startsTable(imports, await compare(imports, rounds), rounds),
    ];
  });
}
