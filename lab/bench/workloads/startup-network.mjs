import { CLI, missingCli, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { startChild } from "../lib/process.mjs";
import { missingShell, starts, startsTable } from "../lib/starts.mjs";
import { logIn } from "../lib/stored-login.mjs";

export const title = "Commands that send requests";
export const start = "in every figure";
export const shows =
  "CPU of a process that starts, sends its requests to the sandbox on loopback, prints and exits, against `node -e 0`. " +
  "The sandbox is another process, whose CPU is not counted. It does not show the time that a network takes.";

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}';

export function unavailable() {
  return missingShell() ?? missingCli();
}

export async function measure({ quick }) {
  const rounds = quick ? 1 : 7;
  const sandbox = await startChild("sandbox.mjs");
  try {
    return await withHome(async (home) => {
      const { baseUrl, mcpUrl, apiToken, pool } = JSON.parse(sandbox.line);
      await logIn(home.AGENTAUTH_HOME, mcpUrl);
      const env = { ...home, AGENTAUTH_API_TOKEN: apiToken };
      const side = (name, words, ratio, more) => starts(`agentauth ${name}`, [CLI, ...words], env, { ratio, more });
      const devices = ["devices", "list", "--pool", pool, "--base-url", baseUrl, "--limit", "5"];
      const sides = [
        starts("node -e 0", ["-e", "0"], env),
        side("devices list --limit 5", devices, 2.2, 63),
        side("devices list --limit 5 --jq", [...devices, "--jq", ".[].id"], 3.8, 170),
        side("request", ["request", mcpUrl, "--no-login", "-d", CALL], 2.4, 110),
        side("token, with a refresh", ["token", mcpUrl, "--no-login", "--force-refresh"], 2.9, 97),
        side("discover", ["discover", mcpUrl], 2.9, 140),
        side("doctor", ["doctor"], 2.9, 140),
        side("mcp tools", ["mcp", "tools", mcpUrl, "--no-login"], 2.9, 86),
        side("mcp call", ["mcp", "call", mcpUrl, "whoami", "--no-login"], 2.9, 140),
      ];
      return [startsTable(sides, await compare(sides, rounds), rounds)];
    });
  } finally {
    await sandbox.stop();
  }
}
