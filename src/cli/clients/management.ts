import { ManagementClient } from "../../api/client.js";
import { networkFetch } from "../../profile/network.js";
import { requireBaseUrl, sandboxNotice, serviceOptions } from "../../profile/service-settings.js";
import type { GlobalFlags } from "../flags/global.js";
import type { CommandContext } from "../runtime/context.js";
import { eventLogger, networkOptions, tracedFetch, traceOptions } from "./network.js";

/** The management client that the settings describe. @throws `AgentAuthError` `usage` when no service is configured */
export function buildManagementClient(flags: GlobalFlags, context: CommandContext): ManagementClient {
  const settings = context.settings();
  const { apiToken } = settings;
  const baseUrl = requireBaseUrl(settings);
  const notice = sandboxNotice(settings);
  if (notice !== undefined) context.io.say(notice);
  const trace = traceOptions(flags, context, true);
  const fetch = tracedFetch(networkFetch(networkOptions(flags, settings, context), context.redactor), trace);
  return new ManagementClient({
    baseUrl,
    ...serviceOptions(settings),
    ...(apiToken && {
      token: () => {
        const token = apiToken.read();
        context.redactor.add(token);
        return token;
      },
    }),
    fetch,
    timeoutMs: flags.timeout === undefined ? undefined : flags.timeout * 1000,
    maxRetries: flags.retries,
    onEvent: eventLogger(trace),
    userAgent: "agentauth-cli",
  });
}
