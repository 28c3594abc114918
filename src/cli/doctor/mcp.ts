import { shellWord } from "../../redact.js";
import { agentOf } from "../agent-context.js";
import type { DoctorFlags } from "../commands/doctor.js";
import type { Deps } from "../context.js";
import { type Check, type Finding, ok, warning } from "./check.js";

/** The checks of one MCP server: whether its issuer is found, and whether somebody is signed in there. */
export function mcpChecks(url: string, flags: DoctorFlags, deps: Deps): Check[] {
  const agent = () => agentOf(flags, deps, "when-present");
  return [
    {
      name: "discovery",
      area: "online",
      async run() {
        const { found, trace, error } = await (await agent()).discover(url, { signal: deps.signal });
        if (error) throw error;
        return ok(`${found?.server} has its tokens from ${found?.issuer.issuer} (${trace.length} requests)`);
      },
    },
    {
      name: "login",
      area: "store",
      async run() {
        const [login] = await (await agent()).status(url);
        return login ? judge(login, url) : warning("nobody is signed in", signIn(url));
      },
    },
  ];
}

function judge(
  login: { state: string; refreshable: boolean; expires_at: string | null; reason: string | null },
  url: string,
): Finding {
  const { state, refreshable, expires_at: end, reason } = login;
  const renewable = refreshable ? "renewable" : "not renewable";
  if (state === "over") return warning(`signed out by the issuer: ${reason ?? "no reason is known"}`, signIn(url));
  if (state === "valid") return ok(`good until ${end ?? "the issuer says otherwise"}, ${renewable}`);
  return refreshable ? ok(`ended ${end}, renewable`) : warning(`ended ${end}, not renewable`, signIn(url));
}

function signIn(url: string): string {
  return `agentauth login ${shellWord(url)}`;
}
