import { CLI, missingCli, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { missingShell, starts, startsTable } from "../lib/starts.mjs";

export const title = "Start of the command";
export const shows =
  "CPU of a process that starts, prints and exits, against `node -e 0` on the same Node. Newer majors start in less " +
  "time themselves, so the same command has a higher ratio there. It does not show a cold disk.";

/** Without a login and without a network: nothing is asked. */
const COMMANDS = [
  { words: ["--version"], goal: "≤ 1.3×" },
  { words: ["--help"], goal: "≤ 1.5×" },
  { words: ["devices", "list", "--help"], goal: "≤ 1.5×" },
  { words: ["devices", "list", "--unknown"], codes: [2], goal: "≤ 1.5×" },
  { words: ["config", "list"], goal: "≤ 1.7×" },
  { words: ["status", "--json"], codes: [0, 4], goal: "≤ 1.9×" },
];

export function unavailable() {
  return missingShell() ?? missingCli();
}

export async function measure({ quick }) {
  const rounds = quick ? 3 : 11;
  const results = await withHome((env) =>
    compare(
      [
        starts("node -e 0", ["-e", "0"], env),
        ...COMMANDS.map(({ words, codes }) => starts(`agentauth ${words.join(" ")}`, [CLI, ...words], env, codes)),
      ],
      rounds,
    ),
  );
  return [startsTable(results, rounds, ["", ...COMMANDS.map(({ goal }) => goal)])];
}
