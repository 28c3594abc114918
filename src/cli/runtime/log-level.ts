import { AgentAuthError } from "../../errors.js";
import type { Env } from "../../platform/system.js";
import { quote } from "../../redact.js";

/** What `AGENTAUTH_LOG` sets, as the flags that do the same. */
const LEVELS = { info: { verbose: true }, debug: { verbose: true, debug: true } } as const;

/**
 * The flags that `AGENTAUTH_LOG` stands for.
 *
 * @throws `AgentAuthError` `usage` for a level that is none
 */
export function logFlags(env: Env): { verbose?: true; debug?: true } {
  const level = env["AGENTAUTH_LOG"];
  if (!level) return {};
  if (Object.hasOwn(LEVELS, level)) return LEVELS[level as keyof typeof LEVELS];
  const rule = `must be one of ${Object.keys(LEVELS).join(", ")}`;
  throw new AgentAuthError("usage", `AGENTAUTH_LOG ${quote(level)} ${rule}`, {
    class: "usage",
    hint: "AGENTAUTH_LOG=debug logs as --debug does; unset it for no log",
  });
}
