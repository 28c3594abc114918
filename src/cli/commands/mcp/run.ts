import { AgentAuthError, usageError } from "../../../errors.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import { quote, shellWord } from "../../../redact.js";
import { textOf } from "../../clients/mcp-content.js";
import { stdinFlag } from "../../flags/grant.js";
import { rowColumns } from "../../output/columns.js";
import { printObject } from "../../output/object.js";
import { formatOf, printRows } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { type McpFlags, withSession } from "./session.js";

const TOOLS = rowColumns([
  { path: "name", header: "TOOL" },
  { path: "description", header: "ABOUT" },
]);

const LIST_TIMEOUT_S = 30;
/** Tools may take a while. */
const CALL_TIMEOUT_S = 60;

/** A tool as `mcp tools -o json` prints it: as its server describes it. */
interface PrintedTool {
  /** Its name. */
  name: string;
  /** What it does. */
  description?: string | undefined;
  /** Its input, as a JSON Schema. */
  inputSchema: Record<string, unknown>;
  /** Its name for users. */
  title?: string | undefined;
  /** Its output, as a JSON Schema. */
  outputSchema?: Record<string, unknown> | undefined;
  /** What its server says of its effects. */
  annotations?: Record<string, unknown> | undefined;
  /** Its icons. */
  icons?: Record<string, unknown>[] | undefined;
  /** How it may be called. */
  execution?: Record<string, unknown> | undefined;
  /** Metadata of its server. */
  _meta?: Record<string, unknown> | undefined;
  /** Fields of later versions of the protocol. */
  [field: string]: unknown;
}

/** `mcp tools`. */
export function runTools(options: McpFlags, context: CommandContext): Promise<number> {
  return withSession(options, context, LIST_TIMEOUT_S, async (session) => {
    const tools: PrintedTool[] = withoutSecrets(await session.tools(context.signal), context.redactor);
    const isId = formatOf(options, context.settings(), context.io) === "id";
    await printRows(isId ? tools.map(({ name }) => ({ id: name })) : tools, TOOLS, options, context);
    return EXIT_CODES.ok;
  });
}

/** `mcp call`: the tool's text on a terminal, its result as JSON for programs; exit code 6 when the tool failed. */
export async function runCall(options: McpFlags, context: CommandContext): Promise<number> {
  checkStdin(options);
  const args = await readArgs(options, context);
  return withSession(options, context, CALL_TIMEOUT_S, async (session) => {
    const result = withoutSecrets(await session.call(options.tool, args, context.signal), context.redactor);
    const format = formatOf(options, context.settings(), context.io);
    if (format === "table" || format === "plain" || format === "wide") {
      await context.io.stdout.write(textOf(result));
    } else {
      await printObject(context.io, format, result, { jq: options.jq });
    }
    if (result.isError === true) throw toolFailed(options);
    return EXIT_CODES.ok;
  });
}

/** A server's result with the token and other secrets masked, since the server may echo them. */
function withoutSecrets<T>(value: T, redactor: CommandContext["redactor"]): T {
  return JSON.parse(JSON.stringify(value), (_name, one: unknown) =>
    typeof one === "string" ? redactor.redactKnown(one) : one,
  ) as T;
}

function toolFailed({ tool, url }: McpFlags): AgentAuthError {
  return new AgentAuthError("mcp_failed", `the tool ${quote(tool, 80)} failed; its output is on standard output`, {
    class: "remote",
    hint: `the arguments of each tool: agentauth mcp tools ${shellWord(url)} --json`,
  });
}

/** Standard input can be read only once. */
function checkStdin(options: McpFlags): void {
  if (options.args !== "-") return;
  const other = options.flow === "paste" ? "--flow paste" : stdinFlag(options);
  if (other === undefined) return;
  throw usageError(
    `--args and ${other} cannot both read standard input`,
    other === "--flow paste" ? "write the JSON after --args" : `write the JSON after --args, or give ${other} a file`,
  );
}

async function readArgs({ args }: McpFlags, { io }: CommandContext): Promise<Record<string, unknown>> {
  const text = args === "-" ? await io.stdin.text() : (args ?? "{}");
  const complain = (why: string) =>
    usageError(`--args ${quote(text, 80)} ${why}`, `for example --args '{"text":"hello"}'`);
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch (cause) {
    throw complain(`is not JSON: ${cause instanceof Error ? cause.message : ""}`);
  }
  if (!isJsonObject(value)) throw complain("is not a JSON object");
  return value;
}
