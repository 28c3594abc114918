import type { AgentAuthError, AgentAuthErrorJson } from "../../../errors.js";
import type { DiscoveryReport } from "../../../oauth/agent-options.js";
import { isLoginNotRequired } from "../../../oauth/discovery/challenge-request.js";
import type { TraceEntry } from "../../../oauth/http/http.js";
import type { Discovered, ResourceMetadata, ServerMetadata } from "../../../oauth/model/metadata.js";
import { coversServer, parseMcpUrl } from "../../../oauth/model/resource.js";
import { escapeText } from "../../../redact.js";
import { parseMcpUrlArgument } from "../../clients/login-first.js";
import { canConfirm, traceLine } from "../../clients/login-method.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { flagText } from "../../flags/flag-name.js";
import { tableText } from "../../output/layout.js";
import { chooseFormat, printObject } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { cliHint, listTools, loginCommandWith } from "../../runtime/hints.js";

/** The output of `discover -o json`. */
interface PrintedDiscovery {
  /** The MCP server. */
  server: string;
  /** The metadata of the resource (RFC 9728); absent if there is none. */
  resource?: ResourceMetadata | undefined;
  /** The metadata of the authorization server (RFC 8414); absent if none was found. */
  issuer?: ServerMetadata | undefined;
  /** False if the server answers requests without a token; absent if that is unknown. */
  login_required?: boolean | undefined;
  /** The command that works next; absent if discovery failed. */
  command?: string | undefined;
  /** What the command is refused for, unless the user adds a flag to it; absent if nothing. */
  warning?: string | undefined;
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
  const { found, trace, error: problem } = await agent.discover(url, { signal: context.signal });
  const isOpen = isLoginNotRequired(problem);
  const failure = isOpen ? undefined : problem;
  const command = isOpen ? listTools(parseMcpUrl(url).resource) : found && loginCommandFor(found, context);
  const warning = found && originWarning(found, options, context);
  const error = failure && (context.withHint ?? cliHint)(failure, { command: "discover", server: url });
  const format = chooseFormat(options, context.settings(), io);
  if (format !== "table" && format !== "plain") {
    const { server = url, resource, issuer } = found ?? {};
    const failed = error && { error: errorData(error, context) };
    const next = command === undefined ? {} : { login_required: !isOpen, command, warning };
    const report: PrintedDiscovery = { server, resource, issuer, ...next, trace, ...failed };
    await printObject(format, report, options, context);
  } else {
    await printSteps({ found, trace }, context);
    if (isOpen) await io.stdout.write(`\n${escapeText(parseMcpUrl(url).resource)} requires no login\n`);
    if (command !== undefined) await io.stdout.write(`\n${isOpen ? "list its tools" : "log in"} with: ${command}\n`);
    if (warning !== undefined) await io.stdout.write(`warning: ${warning}\n`);
  }
  if (error) throw error;
}

/** The command that logs in at what was found. A flag that disables a check is the user's to add. */
function loginCommandFor({ server, issuer }: Discovered, { hintContext }: CommandContext): string {
  const needsClient = issuer.registrationEndpoint === undefined;
  return loginCommandWith(
    server,
    needsClient ? [{ action: "configure", option: "client", clientIssuer: issuer.issuer }] : [],
    hintContext,
  );
}

/** What a login is refused for where the code is sent to another origin; on a terminal the login itself asks. */
function originWarning(
  { issuer: { authorizationEndpoint, tokenEndpoint, promisesIss } }: Discovered,
  options: StoredLoginFlags,
  { io }: CommandContext,
): string | undefined {
  const [from, to] = [authorizationEndpoint, tokenEndpoint].map((url) => new URL(url).origin);
  if (from === to || promisesIss || options.allowCrossOriginEndpoints || canConfirm(options, io)) return undefined;
  return `the code from ${from} would be sent to ${to}: only if you trust both, add ${flagText("allowCrossOriginEndpoints")}`;
}

const PARENT = "a parent of the server URL: every server below it may accept the token";

async function printSteps(
  { found, trace }: Pick<DiscoveryReport, "found" | "trace">,
  context: CommandContext,
): Promise<void> {
  const { io } = context;
  for (const entry of trace) await io.stdout.write(`${escapeText(traceLine(entry))}\n`);
  if (found === undefined) return;
  const { issuer, resource, server } = found;
  const facts = [
    ["server", server],
    ["resource", resource?.resource ?? server],
    ...(resource && !coversServer(new URL(resource.resource), new URL(server), true) ? [["", PARENT]] : []),
    ...(issuer.namedIssuer === undefined ? [] : [["named issuer", issuer.namedIssuer]]),
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
