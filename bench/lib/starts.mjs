// The cost of a process that starts, prints and exits.
import { spawnSync } from "node:child_process";
import { atMost, goalText } from "./claims.mjs";
import { times } from "./table.mjs";

/** Starts per figure. */
const COUNT = 10;

/** Why starts cannot be measured on this machine, or undefined. */
export function missingShell() {
  if (process.platform === "win32") return "it needs a POSIX shell, whose `times` reports the CPU of short processes";
  return undefined;
}

/**
 * A side that starts Node with some arguments. Nothing is preloaded, which would count too: the shell reports the CPU of
 * its children.
 *
 * @param options.codes the exit codes that are no failure
 * @param options.goal the most that it may cost, as a multiple of the first side
 */
export function starts(name, args, env, { codes = [0], goal } = {}) {
  const ends = `case $? in ${codes.join("|")}) ;; *) exit 1 ;; esac`;
  const script = `i=0; while [ $i -lt ${COUNT} ]; do "$@" >/dev/null 2>&1; ${ends}; i=$((i+1)); done; times`;
  return {
    name,
    goal,
    measure() {
      const shell = spawnSync("sh", ["-c", script, "sh", process.execPath, ...args], {
        encoding: "utf8",
        env: { ...process.env, ...env },
      });
      if (shell.status !== 0) throw new Error(`${name} failed:\n${shell.stderr}`);
      const [, children] = shell.stdout.trim().split("\n");
      const seconds = [...children.matchAll(/(\d+)m([\d.]+)s/g)].map(([, m, s]) => Number(m) * 60 + Number(s));
      return { cpuMs: (seconds.reduce((sum, part) => sum + part, 0) * 1000) / COUNT };
    },
  };
}

/** The table of these sides, against the first one. */
export function startsTable(sides, results, rounds) {
  const base = `\`${sides[0].name}\``;
  const claims = sides.map(({ name, goal }, at) =>
    goal === undefined
      ? undefined
      : atMost(`\`${name}\`, CPU`, base, results[at].ratio("cpuMs"), goal, { start: true }),
  );
  return {
    caption: `Node ${process.versions.node.split(".")[0]}, ${rounds} rounds`,
    header: ["side", "CPU per start", `vs. ${sides[0].name}`, "goal"],
    rows: results.map((side, at) => [
      side.name,
      `${side.median("cpuMs").toFixed(1)} ms`,
      times(side.ratio("cpuMs")),
      claims[at] ? goalText(claims[at]) : "",
    ]),
    claims: claims.filter((claim) => claim !== undefined),
  };
}
