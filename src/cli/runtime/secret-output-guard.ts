import { AgentAuthError } from "../../errors.js";
import type { Io } from "../io/io.js";

/**
 * Checks that `--show-secrets` is intended: output where `CI` is set stays in a log that others read.
 *
 * @throws `AgentAuthError` `usage`
 */
export function checkShowSecrets(options: { showSecrets?: unknown; yes?: unknown }, { env, stdout }: Io): void {
  if (options.showSecrets !== true || options.yes === true || stdout.isTTY) return;
  if (/^(?:false|0|no|off)?$/i.test(env["CI"] ?? "")) return;
  throw new AgentAuthError("usage", "--show-secrets would print secrets into the log of a CI job (CI is set)", {
    class: "usage",
    hint: "leave --show-secrets out; if no log records the output, add --yes",
  });
}
