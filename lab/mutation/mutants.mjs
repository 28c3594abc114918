// The mutants of the sources, as the instrumenter finds them, and how some of them are chosen.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import { Instrumenter } from "@stryker-mutator/instrumenter";

const SILENT = { isDebugEnabled: () => false, debug() {}, info() {}, warn() {} };
const OPTIONS = { plugins: null, excludedMutations: [], ignorers: [] };

const withSlashes = (path) => path.split(sep).join("/");

/** Not what is generated, nor what only exports. */
const isMutated = (name) => name.endsWith(".ts") && !/(?:\.gen|(?:^|\/)index)\.ts$/.test(name);

/** The sources that are mutated at or below a path. */
export function sourceFiles(path) {
  const files = globSync([path, `${path}/**/*.ts`]).map(withSlashes);
  if (files.length === 0) throw new Error(`there is no ${path}`);
  return files.filter(isMutated);
}

/** All mutants of the files, with their line before and after. Lines and columns count from 0. */
export async function mutantsOf(files) {
  const mutants = [];
  for (const file of files) {
    const content = readFileSync(file, "utf8");
    const found = await new Instrumenter(SILENT).instrument([{ name: file, content, mutate: true }], OPTIONS);
    const lines = content.split("\n");
    mutants.push(...found.mutants.map((mutant) => ({ ...mutant, ...describeMutant(mutant, lines) })));
  }
  return mutants;
}

/** Names a mutant in every process of a run. */
export function keyOf({ fileName, location: { start, end }, mutatorName, replacement }) {
  const file = withSlashes(relative(process.cwd(), resolve(fileName)));
  return [file, start.line, start.column, end.line, end.column, mutatorName, replacement].join(":");
}

function describeMutant({ location: { start, end }, replacement }, lines) {
  const head = lines[start.line].slice(0, start.column);
  const tail = lines[end.line].slice(end.column);
  return { from: oneLine(lines.slice(start.line, end.line + 1).join("\n")), to: oneLine(head + replacement + tail) };
}

function oneLine(text) {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > 160 ? `${line.slice(0, 130)} … ${line.slice(-26)}` : line;
}

/** The mutants that no test can notice, each with the text that lists it. */
export function readEquivalents(path) {
  const text = readFileSync(path, "utf8");
  const rows = [...text.matchAll(/^# (.+)\n- (.+)\n\+ ?(.*)\n= .+$/gm)];
  if (rows.length !== text.match(/^# /gm).length) throw new Error(`${path}: a row lacks a line`);
  return rows.map(([row, file, from, to]) => ({ row, file, from, to }));
}

/** Without those that are listed. A row that names no mutant is an error: its source has changed. */
export function withoutEquivalents(mutants, equivalents) {
  const left = new Set(mutants);
  for (const { row, file, from, to } of equivalents) {
    const named = mutants.filter((mutant) => mutant.fileName === file && mutant.from === from && mutant.to === to);
    if (named.length === 0) throw new Error(`this names no mutant:\n${row}`);
    for (const mutant of named) left.delete(mutant);
  }
  return [...left];
}

/** The numbers of the lines of each source that differ from a commit, by default from where the branch left main; undefined in a checkout without history. */
export function changedLines(commit) {
  const git = (...args) => {
    const { status, stdout } = spawnSync("git", args, { encoding: "utf8", maxBuffer: Number.POSITIVE_INFINITY });
    return status === 0 ? stdout.trim() : undefined;
  };
  const head = git("rev-parse", "HEAD");
  const bases = [
    git("merge-base", "origin/main", "HEAD"),
    git("merge-base", "main", "HEAD"),
    git("rev-parse", "HEAD~1"),
  ];
  const base = commit ?? bases.find((one) => one !== undefined && one !== head);
  if (base === undefined) return undefined;
  const diff = git("diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-prefix", base, "--", "src");
  if (diff === undefined) throw new Error(`there is no commit ${base}`);
  const lines = new Map();
  let file;
  for (const line of diff.split("\n")) {
    if (line.startsWith("+++ ")) file = line.slice(4);
    const [, from, count = "1"] = /^@@ \S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (from === undefined || !isMutated(file)) continue;
    const numbers = Array.from({ length: Number(count) }, (_, nth) => Number(from) + nth);
    lines.set(file, new Set([...(lines.get(file) ?? []), ...numbers]));
  }
  return lines;
}

/** Draws some of the mutants at random; the same ones for the same seed. */
export function draw(mutants, size, seed) {
  const rankOf = (mutant) =>
    createHash("sha256")
      .update(`${seed} ${keyOf(mutant)}`)
      .digest("hex");
  const ranked = mutants.map((mutant) => ({ mutant, rank: rankOf(mutant) }));
  ranked.sort((one, other) => (one.rank < other.rank ? -1 : 1));
  return ranked.slice(0, size).map(({ mutant }) => mutant);
}
