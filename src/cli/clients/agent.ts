import { AgentClient, type AgentClientOptions } from "../../oauth/agent.js";
import type { TraceEntry } from "../../oauth/http/http.js";
import { toClientOptions } from "../../profile/login-settings.js";
import { agentNetwork } from "../../profile/network.js";
import { checkSetting, toAuthorizationParams } from "../../profile/profile-settings.js";
import { quote } from "../../redact.js";
import { bothReceivers } from "../../telemetry/emit.js";
import { type AgentUse, type CommandContext, type ContextFlags, mayLogin } from "../runtime/context.js";
import { readGrantInputs, readIdp } from "./grant.js";
import { canConfirm, confirm, loginMethod, traceLine } from "./login-method.js";
import { eventLogger, networkOptions, tracedNetwork, traceOptions } from "./network.js";

/**
 * The agent client that the flags and settings describe.
 *
 * @throws `AgentAuthError` `usage` for flags and settings that contradict each other
 */
export async function buildAgentClient(
  flags: ContextFlags,
  context: CommandContext,
  { login, idleTimeoutMs, storesGrant, adapt = (options) => options }: AgentUse,
): Promise<AgentClient> {
  const { io } = context;
  const settings = context.settings();
  const options = networkOptions(flags, settings, context);
  // The queries of a login have secrets in them.
  const http = traceOptions(flags, context, false);
  const network = tracedNetwork(agentNetwork({ ...options, idleTimeoutMs }, context.redactor), http);
  const { client, grant, storedGrants } = await readGrantInputs(flags, context, storesGrant === true);
  const { issuer, clientMetadataUrl } = settings;
  if (issuer) checkSetting("issuer", issuer.value, issuer.source);
  const trace = flags.verbose || flags.debug ? (entry: TraceEntry) => io.verbose(traceLine(entry)) : undefined;
  const described: AgentClientOptions = {
    ...toClientOptions(flags),
    store: await context.store(),
    profile: settings.profile.value,
    userAgent: "agentauth-cli",
    ...(mayLogin(flags, context, login) && { login: loginMethod(flags, context) }),
    client,
    grant,
    storedGrants,
    ...(grant === undefined && { idp: readIdp(flags, context) }),
    issuer: issuer?.value,
    ...(canConfirm(flags, io) && {
      confirmIssuer: ({ clientId, issuer, server }, signal) =>
        confirm(
          io,
          `${quote(server)} names the issuer ${quote(issuer)}. The client ${quote(clientId)} has not been used with an issuer before.\nSend its credentials to ${quote(issuer)}, and to no other issuer from now on?`,
          signal,
        ),
    }),
    mutualTls: options.clientCertificate !== undefined,
    network,
    clock: context.clock,
    clientMetadataUrl: clientMetadataUrl?.value,
    authorizationParams: { ...toAuthorizationParams(settings), ...flags.authorizeParam },
    flow: flags.flow === "device" ? "device" : "browser",
    timeoutMs: flags.timeout === undefined ? undefined : flags.timeout * 1000,
    maxRetries: flags.retries,
    onTrace: trace,
    onEvent: bothReceivers(eventLogger(http), context.audit()),
    onProgress: ({ subject, text }) => (subject === "login" ? io.say(text) : io.verbose(text)),
  };
  return new AgentClient(adapt(described));
}
