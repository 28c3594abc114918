import { ManagementClient } from "../../api/client.js";
import { AgentAuthError } from "../../errors.js";
import type { Settings } from "../config/settings.js";
import type { GlobalFlags } from "../flags/global.js";
import type { CommandContext } from "../runtime/context.js";
import { certificateFiles } from "./certificate.js";
import type { NetworkOptions } from "./network.js";
import { eventLogger, tracedFetch, traceOptions } from "./trace.js";

/**
 * The management client that the settings describe.
 *
 * @throws `AgentAuthError` `usage` when no service is configured
 */
export async function createManagementClient(
  flags: GlobalFlags,
  settings: Settings,
  deps: CommandContext,
): Promise<ManagementClient> {
  const { baseUrl, apiToken, authHeader } = settings;
  if (!baseUrl) {
    throw new AgentAuthError("usage", "no service is configured: the base URL is not set", {
      class: "usage",
      hint: "agentauth config set base_url <url>, or --base-url, or AGENTAUTH_BASE_URL; to try without a service: agentauth demo",
    });
  }
  const { networkFetch } = await import("./network.js");
  const trace = traceOptions(flags, deps, true);
  const fetch = tracedFetch(await networkFetch(networkOptions(flags, settings, deps), deps.redactor), trace);
  return new ManagementClient({
    baseUrl: baseUrl.value,
    ...(apiToken && {
      token: () => {
        const token = apiToken.read();
        deps.redactor.add(token);
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

/**
 * How requests leave this machine, by flags, settings and environment.
 *
 * @throws `AgentAuthError` `usage` for settings that do not go together
 */
export function networkOptions(flags: GlobalFlags, settings: Settings, { io }: CommandContext): NetworkOptions {
  return {
    proxy: flags.proxy,
    caFile: flags.caFile,
    clientCertificate: certificateFiles(settings),
    env: io.env,
  };
}

function placeToken(header: string): (headers: Headers, token: string) => void {
  const [name = "", scheme] = header.split(":").map((part) => part.trim());
  return (headers, token) => headers.set(name, scheme ? `${scheme} ${token}` : token);
}
