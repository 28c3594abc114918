import { spawnSync } from "node:child_process";
import { CLI, missingCli, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { times } from "../lib/table.mjs";

export const title = "Start of the command";
export const shows =
  "CPU of a process that starts, answers and ends, against `node -e 0` on the same Node. Newer majors start in less " +
  "time themselves, so the same command has a higher ratio there. It does not show a cold disk.";

const STARTS = 10;

export function unavailable() {
  if (process.platform === "win32") return "it needs a POSIX shell, whose `times` tells the CPU of short processes";
  return missingCli();
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
  const goals = ["", "≤ 1.3×", "≤ 1.5×"];
  return [
    {
      caption: `Node ${process.versions.node.split(".")[0]}, ${rounds} rounds of ${STARTS} starts`,
      header: ["side", "CPU a start", "to node -e 0", "goal"],
      rows: results.map((side, at) => [
        side.name,
        `${side.median("cpuMs").toFixed(1)} ms`,
        times(side.ratio("cpuMs")),
        goals[at],
      ]),
    },
  ];
}

/** Nothing is preloaded here, where it would weigh: the shell tells what its children took. */
function starts(name, args, env) {
  const script = `i=0; while [ $i -lt ${STARTS} ]; do "$@" >/dev/null || exit 1; i=$((i+1)); done; times`;
  return {
    name,
    measure() {
      const shell = spawnSync("sh", ["-c", script, "sh", process.execPath, ...args], {
        encoding: "utf8",
        env: { ...process.env, ...env },
      });
      if (shell.status !== 0) throw new Error(`${name} failed:\n${shell.stderr}`);
      const [, children] = shell.stdout.trim().split("\n");
      const seconds = [...children.matchAll(/(\d+)m([\d.]+)s/g)].map(([, m, s]) => Number(m) * 60 + Number(s));
      return { cpuMs: (seconds.reduce((sum, part) => sum + part, 0) * 1000) / STARTS };
    },
  };
}
