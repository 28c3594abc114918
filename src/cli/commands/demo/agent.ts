import { spawn } from "node:child_process";
import { abortedError } from "../../../errors.js";
import { VERSION } from "../../../http/version.js";
import { terminalLogin } from "../../../login/terminal.js";
import { openMcp } from "../../../mcp/session.js";
import { AgentClient } from "../../../oauth/agent.js";
import { fileStore } from "../../../store/file/file.js";
import { textOf } from "../../clients/mcp-content.js";
import type { CommandContext } from "../../runtime/context.js";

/** The client name of the demo's agent. */
export const DEMO_CLIENT = "agentauth demo";

/** A client whose user logs in through a "browser" that follows the redirects. */
export interface DemoAgent {
  client: AgentClient;
  /** Another client with the same store. */
  sharing: () => AgentClient;
}

/** The demo's agent. @param home the folder of its login */
export function demoAgent(home: string): DemoAgent {
  const login = terminalLogin({
    say: () => {},
    env: {},
    browser: "demo",
    openBrowser: async (url) => {
      await (await fetch(url)).text();
      return "opened";
    },
  });
  const store = fileStore(home);
  const sharing = () => new AgentClient({ store, login, clientName: DEMO_CLIENT });
  return { client: sharing(), sharing };
}

/** The answer of the MCP server's tool `whoami` for the agent's token. */
export async function callWhoami(agent: AgentClient, mcpUrl: string, signal: AbortSignal): Promise<string> {
  const fetch: typeof globalThis.fetch = (input, init) => agent.fetch(input as string | URL | Request, init);
  const session = await openMcp(mcpUrl, { fetch, name: "agentauth", version: VERSION, signal });
  try {
    return textOf(await session.call("whoami", {}, signal)).trimEnd();
  } finally {
    await session.close();
  }
}

/** What Node itself may need to start. */
const OF_NODE = /^(?:NODE_\w+|PATH|LD_LIBRARY_PATH|SystemRoot|windir|TEMP|TMP|TMPDIR)$/i;

/**
 * Runs the same command of this program in several processes at once.
 *
 * @param home the folder with the logins that they share; they get no settings and no proxy of the environment
 * @returns what each printed
 * @throws Error for a process that fails
 */
export async function runTogether(
  count: number,
  args: readonly string[],
  home: string,
  { program, io, signal }: Pick<CommandContext, "io" | "signal"> & { program: readonly [string, string] },
): Promise<string[]> {
  const env = {
    ...Object.fromEntries(Object.entries(io.env).filter(([name]) => OF_NODE.test(name))),
    AGENTAUTH_HOME: home,
  };
  const run = async () => {
    const [node, script] = program;
    const child = spawn(node, [script, ...args], { env, signal, windowsHide: true, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    // It also closes where it could not be started, or was ended by the signal.
    child.on("error", ({ message }) => err.push(Buffer.from(message)));
    const code = await new Promise((resolve) => child.once("close", resolve));
    if (signal.aborted) throw abortedError(signal);
    if (code !== 0) throw new Error(`a process ended with ${String(code)}: ${Buffer.concat(err).toString("utf8")}`);
    return Buffer.concat(out).toString("utf8").trimEnd();
  };
  // All of them have ended before the folder that they share is removed.
  const results = await Promise.allSettled(Array.from({ length: count }, run));
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}
