import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type AgentAuthError, usageError } from "../../../errors.js";
import { settingVariable } from "../../../platform.js";
import { engineReport } from "../../../profile/engine/health.js";
import { type EngineStore, openEngine } from "../../../profile/engine/open-engine.js";
import { writeSecretFile } from "../../../profile/secrets.js";
import { newKeys } from "../../../profile/store-keys.js";
import { type ResealReport, reseal } from "../../../store/driver/tenant-records.js";
import { storeSql } from "../../../store/postgres/store-sql.js";
import { warnOfUnusable } from "../../clients/login-first.js";
import { engineHost } from "../../clients/store.js";
import type { GlobalFlags, OutputFlags } from "../../flags/global.js";
import { printResult } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import type { CommandRun } from "../../runtime/declaration.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";

export type StoreVerb = "health" | "reseal" | "sql" | "keys";

/** Numbers of records, as `store reseal -o json` prints them. */
export interface ResealRow extends ResealReport {}

export const STORE_RUNS: Readonly<Record<StoreVerb, CommandRun<GlobalFlags & OutputFlags & { path?: string }>>> = {
  async health(options, context) {
    const report = await engineReport(requireEngine(context), context.signal);
    await printResult(report, options, context);
    for (const risk of report.risks) context.io.warn(risk);
    for (const error of report.errors) context.io.warn(`the store cannot be used safely: ${error}`);
    return report.usable ? undefined : EXIT_CODES.store;
  },

  async reseal(options, context) {
    const { driver, ring } = requireEngine(context);
    if (ring === "none") throw usageError("store_keys is none: nothing is sealed", "agentauth store keys <path>");
    const unusable: AgentAuthError[] = [];
    const report = await reseal(driver, ring, { signal: context.signal, onUnusable: (one) => unusable.push(one) });
    await printResult(report satisfies ResealRow, options, context);
    warnOfUnusable(unusable, context);
    return report.unusable > 0 ? EXIT_CODES.store : undefined;
  },

  async sql(_options, { io }) {
    await io.stdout.write(storeSql());
    return undefined;
  },

  async keys({ path }, { io }) {
    const keys = newKeys();
    if (path === undefined) {
      await io.stdout.write(keys);
      return undefined;
    }
    const file = newFile(path);
    writeSecretFile(file, keys);
    io.say(`the key ring is in ${file}; to use it: ${settingVariable("AGENTAUTH_STORE_KEYS", `file:${file}`)}`);
    return undefined;
  },
};

/** The engine of the settings. @throws `AgentAuthError` `usage` if the store is none */
function requireEngine(context: CommandContext): EngineStore {
  const { value, source, engine } = context.storeChoice();
  if (value === "redis" || value === "postgres") return openEngine(value, engine, engineHost(context));
  throw usageError(
    `this command is about the stores redis and postgres, and the store is ${value} (${source})`,
    "set AGENTAUTH_STORE; agentauth doctor checks the other stores",
  );
}

/** The path of a file that does not exist yet: what is there may be the only copy. */
function newFile(path: string): string {
  const file = resolve(path);
  if (!existsSync(file)) return file;
  throw usageError(`the file ${file} exists already`, "name another one, or move it away");
}
