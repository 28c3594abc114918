import { startSandbox } from "../../../dist/sandbox/index.js";
import { CLI, missingCli, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { missingShell, starts, startsTable } from "../lib/starts.mjs";
import { logIn } from "../lib/stored-login.mjs";

export const title = "A token from the store";
export const start = "in every figure";
export const shows =
  "CPU of a process that prints a valid stored token, against `node -e 0` on the same Node. With `--verbose` the " +
  "whole program loads and does the same. It does not show a cold disk, nor a token that has to be refreshed.";

export function unavailable() {
  return missingShell() ?? missingCli();
}

export async function measure({ quick }) {
  const rounds = quick ? 1 : 7;
  return withHome(async (env) => {
    const url = await storeLogin(env.AGENTAUTH_HOME);
    const token = [CLI, "token", url, "--no-login"];
    const sides = [
      starts("node -e 0", ["-e", "0"], env),
      starts("agentauth token", token, env, { ratio: 1.3, more: 22 }),
      starts("agentauth token --format json", [...token, "--format", "json"], env, { ratio: 1.3, more: 30 }),
      starts("agentauth token --verbose", [...token, "--verbose"], env),
      starts("agentauth exec … -- true", [CLI, "exec", url, "--no-login", "--", "true"], env, { ratio: 2.2, more: 38 }),
    ];
    return [startsTable(sides, await compare(sides, rounds), rounds)];
  });
}

/** Stores a login and returns the URL of its server, which is closed by then: any request fails. */
async function storeLogin(home) {
  const sandbox = await startSandbox({ autoApprove: true, devices: 1 });
  try {
    await logIn(home, sandbox.mcpUrl);
    return sandbox.mcpUrl;
  } finally {
    await sandbox.close();
  }
}
