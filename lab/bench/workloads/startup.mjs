import { CLI, missingCli, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { missingShell, starts, startsTable } from "../lib/starts.mjs";

export const title = "Start of the command";
export const start = "in every figure";
export const shows =
  "CPU of a process that starts, prints and exits, against `node -e 0` on the same Node; and of importing an entry point, " +
  "against one of an empty file. Node 20 has its goals as ratios; later majors, which start in less time themselves, as " +
  "milliseconds above that start. It does not show a cold disk.";

/** Without a login and without a network. */
const COMMANDS = [
  { words: ["--version"], ratio: 1.3, more: 5.5 },
  { words: ["--help"], ratio: 1.3, more: 5.5 },
  { words: ["devices", "list", "--help"], ratio: 1.9, more: 35 },
  { words: ["devices", "list", "--unknown"], codes: [2], ratio: 1.9, more: 50 },
  { words: ["wrong-word"], codes: [2], ratio: 1.9, more: 50 },
  { words: ["config", "list"], ratio: 1.9, more: 50 },
  { words: ["status", "--json"], codes: [0, 4], ratio: 2.2, more: 57 },
];

const EMPTY = new URL("../sides/empty.mjs", import.meta.url).href;
/** The entry points, against a file that has nothing. */
const ENTRIES = {
  agentauth: { ratio: 2.3, more: 45 },
  "agentauth/node": { ratio: 3, more: 70 },
  "agentauth/resource-server": { ratio: 2.2, more: 40 },
  "agentauth/sandbox": { ratio: 3.6, more: 90 },
};

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
      ...Object.entries(ENTRIES).map(([name, goals]) =>
        starts(`import "${name}"`, module(`import ${JSON.stringify(name)}`), env, goals),
      ),
    ];
    return [
      startsTable(sides, await compare(sides, rounds), rounds),
      startsTable(imports, await compare(imports, rounds), rounds),
    ];
  });
}
