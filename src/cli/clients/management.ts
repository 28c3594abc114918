import { ManagementClient } from "../../api/client.js";
import { AgentAuthError } from "../../errors.js";
import type { GlobalFlags } from "../flags/global.js";
import type { CommandContext } from "../runtime/context.js";
import { eventLogger, tracedFetch, traceOptions } from "./trace.js";

/**
 * The management client that the settings describe.
 *
 * @throws `AgentAuthError` `usage` when no service is configured
 */
export async function createManagementClient(flags: GlobalFlags, context: CommandContext): Promise<ManagementClient> {
  const settings = context.settings();
  const { baseUrl, apiToken, authHeader } = settings;
  if (!baseUrl) {
    throw new AgentAuthError("usage", "no service is configured: the base URL is not set", {
      class: "usage",
      hint: "agentauth config set base_url <url>, or --base-url, or AGENTAUTH_BASE_URL; to try without a service: agentauth demo",
    });
  }
  const { networkFetch, networkOptions } = await import("./network.js");
  const trace = traceOptions(flags, context, true);
  const fetch = tracedFetch(await networkFetch(networkOptions(flags, settings, context), context.redactor), trace);
  return new ManagementClient({
    baseUrl: baseUrl.value,
    ...(apiToken && {
      token: () => {
        const token = apiToken.read();
        context.redactor.add(token);
        return token;
      },
    }),
    ...(authHeader && { auth: placeToken(authHeader.value) }),
    fetch,
    timeoutMs: flags.timeout === undefined ? undefined : flags.timeout * 1000,
    maxAttempts: flags.retries === undefined ? undefined : flags.retries + 1,
    onEvent: eventLogger(trace),
    userAgent: "agentauth-cli",
  });
}

function placeToken(header: string): (headers: Headers, token: string) => void {
  const [name = "", scheme] = header.split(":").map((part) => part.trim());
  return (headers, token) => headers.set(name, scheme ? `${scheme} ${token}` : token);
}
