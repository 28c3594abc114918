import type { AgentAuthError, AgentAuthErrorJson } from "../../../errors.js";
import type { DiscoveryReport } from "../../../oauth/agent-options.js";
import { coversServer } from "../../../oauth/discovery/resource.js";
import type { ResourceMetadata, ServerMetadata } from "../../../oauth/discovery/types.js";
import type { TraceEntry } from "../../../oauth/http/trace.js";
import { escapeText } from "../../../redact.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { traceLine } from "../../clients/trace-line.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { formatOf } from "../../output/chosen-format.js";
import { tableText } from "../../output/layout.js";
import { printObject } from "../../output/object.js";
import type { CommandContext } from "../../runtime/context.js";
import { cliHint } from "../../runtime/hints.js";

/** The output of `discover -o json`. */
interface PrintedDiscovery {
  /** The MCP server. */
  server: string;
  /** The metadata of the resource (RFC 9728); absent if there is none. */
  resource?: ResourceMetadata | undefined;
  /** The metadata of the authorization server (RFC 8414); absent if none was found. */
  issuer?: ServerMetadata | undefined;
  /** Every request, in order. */
  trace: readonly TraceEntry[];
  /** Why no issuer was found; absent if one was. */
  error?: Pick<AgentAuthErrorJson, "code" | "class" | "message" | "hint">;
}

/** `discover`: prints every step, also when discovery fails. */
export async function runDiscover(
  options: StoredLoginFlags & { url?: string },
  context: CommandContext,
): Promise<undefined> {
  const { io } = context;
  const agent = await context.agent();
  const url = parseMcpUrlArgument(options.url ?? "");
  const { found, trace, error: failure } = await agent.discover(url, { signal: context.signal });
  const error = failure && (context.withHint ?? cliHint)(failure, { command: "discover" });
  const format = formatOf(options, context.settings(), io);
  if (format !== "table" && format !== "plain") {
    const { server = url, resource, issuer } = found ?? {};
    const failed = error && { error: errorData(error, context) };
    const report: PrintedDiscovery = { server, resource, issuer, trace, ...failed };
    await printObject(io, format, report, { jq: options.jq, now: context.now });
  } else await printSteps({ found, trace }, context);
  if (error) throw error;
  return undefined;
}

const PARENT = "a parent of the server URL: every server below it may accept the token";

function isParent(resource: string, server: string): boolean {
  return !coversServer(new URL(resource), new URL(server), true);
}

async function printSteps(
  { found, trace }: Pick<DiscoveryReport, "found" | "trace">,
  { io }: CommandContext,
): Promise<void> {
  for (const entry of trace) await io.stdout.write(`${escapeText(traceLine(entry))}\n`);
  if (found === undefined) return;
  const { issuer, resource, server } = found;
  const facts = [
    ["server", server],
    ["resource", resource?.resource ?? server],
    ...(resource && isParent(resource.resource, server) ? [["", PARENT]] : []),
    ["issuer", issuer.issuer],
    ["authorization", issuer.authorizationEndpoint],
    ["token endpoint", issuer.tokenEndpoint],
    ["registration", issuer.registrationEndpoint ?? "(no dynamic registration)"],
    ["scopes", resource?.scopesSupported?.join(" ") ?? "(not announced)"],
  ];
  const rows = facts.map(([name = "", value = ""]) => [name, escapeText(value)]);
  await io.stdout.write(`\n${await tableText(rows, 1)}\n`);
}

function errorData(
  { code, class: kind, message, hint }: AgentAuthError,
  { redactor }: CommandContext,
): NonNullable<PrintedDiscovery["error"]> {
  const shown = { code, class: kind, message: redactor.redact(message) };
  return hint === undefined ? shown : { ...shown, hint: redactor.redact(hint) };
}
