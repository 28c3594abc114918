import { certificateFiles } from "../../profile/certificate.js";
import { CA_FLAG, type NetworkOptions, PROXY_FLAG, withSource } from "../../profile/network.js";
import type { Settings } from "../../profile/settings.js";
import type { GlobalFlags } from "../flags/global.js";
import type { RunContext } from "../runtime/context.js";

/**
 * How requests leave this machine, by flags, settings and environment.
 *
 * @throws `AgentAuthError` `usage` for settings that contradict each other
 */
export function networkOptions(
  flags: Pick<GlobalFlags, "proxy" | "caFile">,
  settings: Settings,
  { io }: Pick<RunContext, "io">,
): NetworkOptions {
  return {
    proxy: withSource(flags.proxy, PROXY_FLAG),
    caFile: withSource(flags.caFile, CA_FLAG),
    systemCa: settings.useSystemCa,
    clientCertificate: certificateFiles(settings),
    env: io.env,
  };
}
