// The built package. SOAK_DIST names another build than the one in dist/.
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const { SOAK_DIST } = process.env;
const folder = SOAK_DIST ? pathToFileURL(`${SOAK_DIST}/`) : new URL("../../dist/", import.meta.url);
if (!existsSync(fileURLToPath(new URL("index.js", folder)))) {
  console.error("dist/ is missing: run `npm run build` first");
  process.exit(1);
}

export const { AgentClient, isAgentAuthError } = await import(new URL("index.js", folder));
export const { fileStore } = await import(new URL("node/index.js", folder));

/** `startSandbox`, loaded on demand: workers do not need it. */
export async function startSandbox(options) {
  return (await import(new URL("sandbox/index.js", folder))).startSandbox(options);
}
