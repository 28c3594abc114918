import { terminalLogin } from "../../login/terminal.js";
import { AgentClient, type AgentClientOptions } from "../../oauth/agent.js";
import type { GrantStore } from "../../oauth/grant/grant-store.js";
import type { TraceEntry } from "../../oauth/http/trace.js";
import { quote } from "../../redact.js";
import { checkSetting, readConfig } from "../config/file.js";
import { homeOf } from "../config/home.js";
import { writtenProfile } from "../config/profile.js";
import { settingsOf } from "../config/settings.js";
import { chooseStore, openStore } from "../config/store.js";
import type { AgentFlags } from "../flags/agent.js";
import type { Io } from "../io/io.js";
import { agentMode } from "../runtime/agent-mode.js";
import { type CommandContext, mayAsk } from "../runtime/context.js";
import { pendingSaves } from "../runtime/pending-saves.js";
import { agentNetwork } from "./agent-network.js";
import { confirm } from "./confirm.js";
import { readGrantInputs } from "./grant.js";
import { networkOptions } from "./management.js";
import type { NetworkOptions } from "./network.js";
import { eventLogger, tracedNetwork, traceOptions } from "./trace.js";

/** Whether a command may sign a person in when it needs to. */
export type Interactivity = "always" | "when-present";

/**
 * The agent client that the flags and settings describe.
 *
 * @param interactivity `always` for `login`; `when-present` only where a person is there, or where the flags say so
 * @param idleTimeout milliseconds without a byte of a server's answer; 0 for no end
 */
export async function createAgentClient(
  flags: Omit<AgentFlags, "output">,
  deps: CommandContext,
  interactivity: Interactivity,
  { idleTimeoutMs: idleTimeout }: Pick<NetworkOptions, "idleTimeoutMs"> = {},
): Promise<AgentClient> {
  const { io } = deps;
  const settings = settingsOf(flags, deps);
  const leaving = networkOptions(flags, settings, deps);
  // The queries of a sign-in have secrets in them.
  const http = traceOptions(flags, deps, false);
  const network = tracedNetwork(
    await agentNetwork({ ...leaving, idleTimeoutMs: idleTimeout }, deps.redactor),
    http,
    flags.proxy,
  );
  const { client, grant } = await readGrantInputs(flags, deps);
  const { issuer } = settings;
  if (issuer) checkSetting("issuer", issuer.value, issuer.source);
  const trace = flags.verbose || flags.debug ? (entry: TraceEntry) => io.verbose(traceLine(entry)) : undefined;
  return new AgentClient({
    store: storeOf(deps, settings.profile.value),
    profile: settings.profile.value,
    clientName: "agentauth",
    userAgent: "agentauth-cli",
    ...(mayLogin(flags, deps, interactivity) && { login: loginMethod(flags, deps) }),
    client,
    grant,
    issuer: issuer?.value,
    trustNamedIssuer: flags.trustNamedIssuer,
    ...(client && grant === undefined && mayConfirm(flags, io) && { confirmIssuer: issuerQuestion(io) }),
    mutualTls: leaving.clientCertificate !== undefined,
    network,
    clientMetadataUrl: flags.clientMetadataUrl,
    resource: flags.resource,
    dpop: flags.dpop,
    flow: flags.flow === "device" ? "device" : "browser",
    loginHint: flags.accountHint,
    timeoutMs: flags.timeout === undefined ? undefined : flags.timeout * 1000,
    maxAttempts: flags.retries === undefined ? undefined : flags.retries + 1,
    allowMissingPkceMetadata: flags.allowMissingPkceMetadata,
    allowPrivateNetwork: flags.allowPrivateNetwork,
    allowCrossOriginMetadata: flags.allowCrossOriginMetadata,
    allowCrossOriginEndpoints: flags.allowCrossOriginEndpoints,
    legacyDiscovery: flags.legacyDiscovery,
    strictResource: flags.strictResource,
    sameOriginEndpoints: flags.sameOriginEndpoints,
    onTrace: trace,
    onEvent: eventLogger(http),
    onProgress: ({ about, text }) => (about === "sign-in" ? io.say(text) : io.verbose(text)),
  });
}

/** A step of the flow in a line. */
export function traceLine({ step, method, url, status, used, why }: TraceEntry): string {
  return `${used ? "+" : "-"} ${step}: ${method} ${url}${status === undefined ? "" : ` ${status}`}: ${why}`;
}

/** Whether a user can answer a question on stderr; an agent can run us in a terminal that no user reads. */
function mayConfirm(flags: Pick<AgentFlags, "input">, io: Io): boolean {
  return mayAsk(flags, io) && io.stdin.isTTY && io.stderr.isTTY && agentMode(io.env, io.stdout) === undefined;
}

/** Asks whether the issuer that a server names is the one of the user's client. */
function issuerQuestion(io: Io): AgentClientOptions["confirmIssuer"] {
  return ({ clientId, issuer, server }, signal) =>
    confirm(
      io,
      `${quote(server)} names the issuer ${quote(issuer)}. The client ${quote(clientId)} has not been used with an issuer before.\nSend its credentials to ${quote(issuer)}, and to no other issuer from now on?`,
      signal,
    );
}

/** The store of the profile, as settings and environment choose it. */
export function storeOf(deps: CommandContext, profile: string): GrantStore {
  const home = homeOf(deps);
  return pendingSaves.watch(
    openStore(chooseStore(deps.io.env, writtenProfile(profile, readConfig(home))), home, deps.io),
  );
}

/** Whether somebody may be asked to sign in: a person is there, or the flags say so. */
export function mayLogin(
  flags: Omit<AgentFlags, "output">,
  { io }: CommandContext,
  interactivity: Interactivity,
): boolean {
  if (flags.grant !== undefined) return false;
  if (interactivity === "always") return true;
  if (flags.login === false || !mayAsk(flags, io)) return false;
  const named = flags.browser !== undefined && flags.browser !== "none";
  return flags.login === true || named || (io.stdin.isTTY && io.stderr.isTTY);
}

/**
 * How a person signs in, as the flags say. Where nobody may be asked, the address is told all the same, and the callback
 * waited for: whoever reads it may open it elsewhere.
 */
export function loginMethod(flags: Omit<AgentFlags, "output">, { io }: CommandContext) {
  const isAsked = mayAsk(flags, io);
  return terminalLogin({
    // Without the address there is no signing in, however quiet the rest is to be.
    say: (text) => io.with({ quiet: false }).say(text),
    env: io.env,
    flow: flags.flow === "paste" ? "paste" : "browser",
    browser: isAsked ? flags.browser : "none",
    redirectHost: flags.redirectHost,
    redirectPort: flags.redirectPort,
    loginTimeoutSeconds: flags.loginTimeout,
    confirm: mayConfirm(flags, io) ? (question, signal) => confirm(io, question, signal) : undefined,
    input: isAsked && (io.stdin.isTTY || flags.flow === "paste") ? io.stdin.stream : undefined,
  });
}
