// The cost of a process that starts, prints and exits.
import { spawnSync } from "node:child_process";
import { atMost, goalText } from "./claims.mjs";
import { times } from "./table.mjs";

/** Starts per figure. */
const COUNT = 10;

/** The major whose own start is long enough to compare with; later ones start in half the time or less. */
const FLOOR = "20";

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
 * @param options.ratio the most that it may cost on Node 20, as a multiple of the first side
 * @param options.more the most that it may cost above the first side on later majors, in milliseconds
 */
export function starts(name, args, env, { codes = [0], ...goals } = {}) {
  const ends = `case $? in ${codes.join("|")}) ;; *) exit 1 ;; esac`;
  const script = `i=0; while [ $i -lt ${COUNT} ]; do "$@" >/dev/null 2>&1; ${ends}; i=$((i+1)); done; times`;
  return {
    name,
    goals,
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
  const major = process.versions.node.split(".")[0];
  const base = `\`${sides[0].name}\``;
  const claims = sides.map(({ name, goals: { ratio, more } }, at) => {
    const goal = major === FLOOR ? ratio : more;
    if (goal === undefined) return undefined;
    const what = `\`${name}\`, CPU`;
    if (major === FLOOR) return atMost(what, base, results[at].ratio("cpuMs"), goal, { start: true });
    return atMost(`${what} above its start`, base, results[at].difference("cpuMs"), goal, { unit: "ms", start: true });
  });
  return {
    caption: `Node ${major}, ${rounds} rounds`,
    header: ["side", "CPU per start", "above the first", `vs. ${sides[0].name}`, "goal"],
    rows: results.map((side, at) => [
      side.name,
      `${side.median("cpuMs").toFixed(1)} ms`,
      at === 0 ? "" : `+${side.difference("cpuMs").toFixed(1)} ms`,
      times(side.ratio("cpuMs")),
      claims[at] ? goalText(claims[at]) : "",
    ]),
    claims: claims.filter((claim) => claim !== undefined),
  };
}
