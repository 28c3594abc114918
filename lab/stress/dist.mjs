// The built package. SOAK_DIST names another build than the one in dist/.
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const { SOAK_DIST } = process.env;
const folder = SOAK_DIST ? pathToFileURL(`${SOAK_DIST}/`) : new URL("../../dist/", import.meta.url);
if (!existsSync(fileURLToPath(new URL("index.js", folder)))) {
  console.error("dist/ is missing: run `npm run build` first");
  process.exit(1);
}
const load = (file) => import(new URL(file, folder));

export const { AgentClient, isAgentAuthError } = await load("index.js");
export const { fileStore } = await load("node.js");
export const { grantStore, keyRing } = await load("store/index.js");
export const { redisDriver } = await load("store/redis/index.js");
export const { postgresDriver, storeSql } = await load("store/postgres/index.js");

/** `startSandbox`, loaded on demand: workers do not need it. */
export async function startSandbox(options) {
  return (await load("sandbox/index.js")).startSandbox(options);
}
