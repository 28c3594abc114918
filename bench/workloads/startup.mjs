import { CLI, missingCli, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { missingShell, starts, startsTable } from "../lib/starts.mjs";

export const title = "Start of the command";
export const shows =
  "CPU of a process that starts, prints and exits, against `node -e 0` on the same Node. Newer majors start in less " +
  "time themselves, so the same command has a higher ratio there. It does not show a cold disk.";

export function unavailable() {
  return missingShell() ?? missingCli();
}

export async function measure({ quick }) {
  const rounds = quick ? 3 : 11;
  const results = await withHome((env) =>
    compare(
      [
        starts("node -e 0", ["-e", "0"], env),
        starts("agentauth --version", [CLI, "--version"], env),
        starts("agentauth --help", [CLI, "--help"], env),
      ],
      rounds,
    ),
  );
  return [startsTable(results, rounds, ["", "≤ 1.3×", "≤ 1.5×"])];
}
