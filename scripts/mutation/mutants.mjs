// The mutants of the sources, as the instrumenter finds them, and how some of them are chosen.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { Instrumenter } from "@stryker-mutator/instrumenter";

const SILENT = { isDebugEnabled: () => false, debug() {}, info() {}, warn() {} };
const OPTIONS = { plugins: null, excludedMutations: [], ignorers: [] };

/** Not what is generated, nor what only exports. */
const isMutated = (name) => name.endsWith(".ts") && !/(?:\.gen|(?:^|\/)index)\.ts$/.test(name);

/** What real engines run, in tests of processes (see `coverage` in vitest.config.ts): a sample cannot judge it. */
const OF_ENGINES =
  /^src\/(?:store\/(?:redis\/(?:connection|engine|redis-driver|scan|scripts)|postgres\/(?:client|watch))\.ts$|profile\/engine\/)/;

export const isOfEngines = (name) => OF_ENGINES.test(name);

/** The paths of the sources that are mutated below a path. */
export function sourceFiles(root, path) {
  const full = join(root, path);
  if (!statSync(full).isDirectory()) return [path].filter(isMutated);
  const names = readdirSync(full, { recursive: true }).map((name) => name.split(sep).join("/"));
  return names.filter(isMutated).map((name) => `${path.replace(/\/$/, "")}/${name}`);
}

/** All mutants of the files, with their line before and after. Lines and columns count from 0. */
export async function mutantsOf(root, files) {
  const mutants = [];
  for (const file of files) {
    const content = readFileSync(join(root, file), "utf8");
    const found = await new Instrumenter(SILENT).instrument([{ name: file, content, mutate: true }], OPTIONS);
    const lines = content.split("\n");
    mutants.push(...found.mutants.map((mutant) => ({ ...mutant, ...describeMutant(mutant, lines) })));
  }
  return mutants;
}

/** Names a mutant in every process of a run. */
export function keyOf(root, { fileName, location: { start, end }, mutatorName, replacement }) {
  const file = fileName.startsWith(root)
    ? fileName
        .slice(root.length + 1)
        .split(sep)
        .join("/")
    : fileName;
  return [file, start.line, start.column, end.line, end.column, mutatorName, replacement].join(":");
}

function describeMutant({ location: { start, end }, replacement }, lines) {
  const head = lines[start.line].slice(0, start.column);
  const tail = lines[end.line].slice(end.column);
  const middle = lines.slice(start.line, end.line + 1).join("\n");
  const inner = middle.slice(start.column, middle.length - tail.length);
  return { from: oneLine(head + inner + tail), to: oneLine(head + replacement + tail) };
}

function oneLine(text) {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > 160 ? `${line.slice(0, 130)} … ${line.slice(-26)}` : line;
}

/** Without those that equivalents.txt lists. A row that names no mutant is an error: its source has changed. */
export function withoutEquivalents(path, files, mutants) {
  const left = new Set(mutants);
  for (const block of readFileSync(path, "utf8").split(/\n\n+/)) {
    const of = (sign) =>
      block
        .split("\n")
        .find((line) => line.startsWith(`${sign} `))
        ?.slice(2);
    const [file, from, to = "", reason] = [of("#"), of("-"), of("+"), of("=")];
    if (from === undefined || !files.includes(file)) continue;
    const named = mutants.filter((mutant) => mutant.fileName === file && mutant.from === from && mutant.to === to);
    if (named.length === 0 || !reason) throw new Error(`${path}: this names no mutant, or no reason:\n${block}`);
    for (const mutant of named) left.delete(mutant);
  }
  return [...left];
}

/** @throws if a row names no mutant */
export async function checkEquivalents(root, path) {
  const files = [...readFileSync(path, "utf8").matchAll(/^# (.+)$/gm)].map(([, file]) => file);
  withoutEquivalents(path, files, await mutantsOf(root, [...new Set(files)]));
}

/** The numbers of the lines of each source that differ from a commit, by default from where the branch left main; undefined in a checkout without history. */
export function changedLines(root, commit) {
  const git = (...args) =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const base = commit ?? baseOf(git);
  if (base === undefined) return undefined;
  const lines = new Map();
  let file;
  for (const line of git("diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-prefix", base, "--", "src").split(
    "\n",
  )) {
    if (line.startsWith("+++ ")) file = line.slice(4);
    const [, from, count = "1"] = /^@@ \S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (from === undefined || !isMutated(file)) continue;
    const numbers = Array.from({ length: Number(count) }, (_, nth) => Number(from) + nth);
    lines.set(file, new Set([...(lines.get(file) ?? []), ...numbers]));
  }
  return lines;
}

function baseOf(git) {
  for (const find of [
    ["merge-base", "origin/main", "HEAD"],
    ["merge-base", "main", "HEAD"],
    ["rev-parse", "HEAD~1"],
  ]) {
    try {
      const base = git(...find).trim();
      if (base !== git("rev-parse", "HEAD").trim()) return base;
    } catch {
      // There is no such commit here.
    }
  }
  return undefined;
}

/** Draws some of the items at random; the same ones for the same seed (mulberry32). */
export function draw(items, size, seed) {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const left = [...items];
  const drawn = [];
  while (drawn.length < size && left.length > 0) drawn.push(...left.splice(Math.floor(random() * left.length), 1));
  return drawn;
}
