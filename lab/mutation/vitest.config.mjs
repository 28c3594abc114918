// The tests of a run, in one process and one by one: the runner finds the tests that cover a mutant by the one that runs.
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer } from "vitest/node";
import base from "../../vitest.config.ts";
import { distance } from "./tests.mjs";

const read = () => JSON.parse(readFileSync(process.env.AGENTAUTH_MUTATION, "utf8"));
const { projects, coverage: _, ...shared } = base.test;
const oneByOne = { maxConcurrency: 1, maxWorkers: 1, fileParallelism: false };
const { tests } = read();
const isolated = tests.filter((path) => projects[1].test.include.includes(path));

/** What survives its nearest tests is run by so many files of those that are farther: each costs as much as all before. */
const FAR = 20;

class NearestFirst extends BaseSequencer {
  async sort(specs) {
    const { mode, activeMutant, mutantActivation } = this.ctx.getRootProject().getProvidedContext();
    // On a busy machine a test may fail once; that of a mutant has been seen to pass.
    for (const { project } of specs) project.config.retry = mode === "dry-run" ? 2 : 0;
    const source = activeMutant === undefined ? undefined : read().sources[activeMutant];
    if (source === undefined) return super.sort(specs);
    const away = ({ moduleId }) => distance(source, relative(this.ctx.config.root, moduleId));
    const sorted = specs.toSorted((one, other) => away(one) - away(other));
    // What runs when a module is loaded is covered by no test in particular.
    const isStatic = mutantActivation === "static";
    const near = sorted.filter((spec) => away(spec) <= (isStatic ? 3 : 2));
    return isStatic ? near : sorted.slice(0, near.length + FAR);
  }
}

export default defineConfig({
  ...base,
  test: {
    ...shared,
    ...oneByOne,
    reporters: [],
    // A mutant that lets a test wait for ever is killed sooner.
    testTimeout: 60_000,
    sequence: { sequencer: NearestFirst, setupFiles: "list" },
    projects: [
      selected(projects[0], tests, [join(import.meta.dirname, "load.mjs")]),
      selected(projects[1], isolated),
    ].filter(({ test }) => test.include.length > 0),
  },
});

function selected(project, include, more = []) {
  const setupFiles = [...(project.test.setupFiles ?? []), ...more];
  return { ...project, test: { ...project.test, ...oneByOne, include, setupFiles } };
}
