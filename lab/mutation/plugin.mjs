// What Stryker asks during a run: which mutants were chosen, and who gets the result of each.
import { readFileSync } from "node:fs";
import { declareValuePlugin, PluginKind } from "@stryker-mutator/api/plugin";
import { keyOf } from "./mutants.mjs";

/** Stryker makes all mutants inside the ranges of those that were chosen; the others are not run. */
const checker = {
  async init() {},

  async check(mutants) {
    const chosen = new Set(JSON.parse(readFileSync(process.env.AGENTAUTH_MUTATION, "utf8")).chosen);
    const answer = (mutant) =>
      chosen.has(keyOf(mutant)) ? { status: "passed" } : { status: "compileError", reason: "not chosen" };
    return Object.fromEntries(mutants.map((mutant) => [mutant.id, answer(mutant)]));
  },

  async group(mutants) {
    return [mutants.map(({ id }) => id)];
  },
};

/** Its methods are set by the process that starts Stryker: reporters run in it. */
export const listener = {};

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Checker, "chosen", checker),
  declareValuePlugin(PluginKind.Reporter, "listener", listener),
];
