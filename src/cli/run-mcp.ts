import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import { VERSION } from "../http/user-agent.js";
import { type McpSession, openMcp } from "../mcp/client.js";
import { escapeText, quote, shellWord } from "../redact.js";
import { agentOf } from "./agent-context.js";
import type { McpFlags } from "./commands/mcp.js";
import { type Deps, settingsOf } from "./context.js";
import { EXIT_CODES } from "./exit-codes.js";
import { stdinFlag } from "./machine-flags.js";
import { mcpAddress } from "./mcp-address.js";
import { textOf } from "./mcp-text.js";
import { printObject } from "./output/object.js";
import { createWriter } from "./output/writer.js";
import { formatOf } from "./run-list.js";

const TOOL_COLUMNS = [
  { path: "name", header: "TOOL" },
  { path: "description", header: "ABOUT" },
];
const TOOLS = { columns: TOOL_COLUMNS, wideColumns: TOOL_COLUMNS, fields: ["name", "description", "inputSchema"] };

/** `mcp tools`. */
export function runTools(options: McpFlags, deps: Deps): Promise<number> {
  return withSession(options, deps, async (session) => {
    const tools = await session.tools(deps.signal);
    const format = formatOf(options, settingsOf(options, deps), deps.io);
    const writer = createWriter(format, { ...TOOLS, jq: options.jq }, deps.io);
    await writer.write(format === "id" ? tools.map((tool) => ({ ...tool, id: tool.name })) : tools);
    await writer.end();
    return EXIT_CODES.ok;
  });
}

/** `mcp call`: the tool's text on a terminal, its result as JSON for programs; exit code 6 when the tool failed. */
export async function runCall(options: McpFlags, deps: Deps): Promise<number> {
  checkInput(options);
  const args = await readArgs(options, deps);
  return withSession(options, deps, async (session) => {
    const result = await session.call(options.tool, args, deps.signal);
    const format = formatOf(options, settingsOf(options, deps), deps.io);
    if (format === "table" || format === "plain" || format === "wide") {
      await deps.io.stdout.write(textOf(result));
    } else {
      await printObject(deps.io, format, result, { jq: options.jq });
    }
    if (result.isError === true) throw toolFailed(options);
    return EXIT_CODES.ok;
  });
}

function toolFailed({ tool, url }: McpFlags): AgentAuthError {
  return new AgentAuthError("mcp_failed", `the tool ${quote(tool, 80)} failed; standard output has what it said`, {
    class: "remote",
    hint: `what each tool takes: agentauth mcp tools ${shellWord(url)} --json`,
  });
}

/** Standard input is there once. */
function checkInput(options: McpFlags): void {
  if (options.args !== "-") return;
  const other = options.flow === "paste" ? "--flow paste" : stdinFlag(options);
  if (other === undefined) return;
  throw new AgentAuthError("usage", `--args and ${other} cannot both read standard input`, {
    class: "usage",
    hint:
      other === "--flow paste" ? "write the JSON after --args" : `write the JSON after --args, or give ${other} a file`,
  });
}

async function readArgs({ args }: McpFlags, { io }: Deps): Promise<Record<string, unknown>> {
  const text = args === "-" ? await io.stdin.text() : (args ?? "{}");
  const complain = (why: string) =>
    new AgentAuthError("usage", `--args ${quote(text, 80)} ${why}`, {
      class: "usage",
      hint: `for example --args '{"text":"hello"}'`,
    });
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch (cause) {
    throw complain(`is not JSON: ${cause instanceof Error ? cause.message : ""}`);
  }
  if (!isJsonObject(value)) throw complain("is not a JSON object");
  return value;
}

async function withSession(
  options: McpFlags,
  deps: Deps,
  work: (session: McpSession) => Promise<number>,
): Promise<number> {
  const url = mcpAddress(options.url);
  const agent = await agentOf(options, deps, "when-present");
  if (options.scope !== undefined) await agent.token(url, { scope: options.scope, signal: deps.signal });
  // The SDK wraps what its fetch throws; the error that tells what to do is the one from before.
  let ours: AgentAuthError | undefined;
  const fetch: typeof globalThis.fetch = async (input, init) => {
    try {
      return await agent.fetch(input as string | URL | Request, init);
    } catch (error) {
      if (isAgentAuthError(error)) ours ??= error;
      throw error;
    }
  };
  let session: McpSession | undefined;
  try {
    session = await openMcp(url, { fetch, name: "agentauth", version: VERSION, signal: deps.signal });
    return await work(session);
  } catch (error) {
    if (ours) throw ours;
    if (isAgentAuthError(error) || !(error instanceof Error)) throw error;
    throw new AgentAuthError("mcp_failed", `the MCP server ${quote(url)}: ${escapeText(error.message).slice(0, 300)}`, {
      class: "remote",
      cause: error,
    });
  } finally {
    await session?.close().catch(() => undefined);
  }
}
