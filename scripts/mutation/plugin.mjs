// What Stryker asks during a run: which mutants were chosen, and who is told about each that was run.
import { readFileSync } from "node:fs";
import { declareClassPlugin, PluginKind } from "@stryker-mutator/api/plugin";
import { keyOf } from "./mutants.mjs";

/** Stryker makes all mutants inside the ranges of those that were chosen; the others are not run. */
class Chosen {
  chosen = new Set(JSON.parse(readFileSync(process.env.AGENTAUTH_MUTATION, "utf8")).chosen);

  async init() {}

  async check(mutants) {
    const isChosen = (mutant) => this.chosen.has(keyOf(process.cwd(), mutant));
    const answer = (mutant) =>
      isChosen(mutant) ? { status: "passed" } : { status: "compileError", reason: "not chosen" };
    return Object.fromEntries(mutants.map((mutant) => [mutant.id, answer(mutant)]));
  }

  async group(mutants) {
    return [mutants.map(({ id }) => id)];
  }
}

/** Set by the process that starts Stryker: reporters run in it. */
export const listener = { onPlan() {}, onMutant() {} };

class Listener {
  onMutationTestingPlanReady({ mutantPlans }) {
    listener.onPlan(mutantPlans.map(({ mutant }) => mutant));
  }

  onMutantTested(result) {
    listener.onMutant(result);
  }
}

export const strykerPlugins = [
  declareClassPlugin(PluginKind.Checker, "chosen", Chosen),
  declareClassPlugin(PluginKind.Reporter, "listener", Listener),
];
