import type { AgentAuthError } from "../errors.js";
import { withHint } from "./continuation.js";

const GIVE_TOKEN = "set AGENTAUTH_API_TOKEN, or keep one: agentauth config set api_token - < token.txt";

const LATER = "call again later, or allow more attempts with --retries <n>";

/** What helps on the command line, where the library can only name its own options. */
const HINTS: Readonly<Record<string, string>> = {
  not_authenticated: `give an API token: ${GIVE_TOKEN}`,
  bad_authtoken: `the API token is wrong or has ended; ${GIVE_TOKEN}`,
  timeout: "--timeout <seconds> allows more time, --retries <n> more attempts",
  tls_failed: "--ca-file <file> trusts a certificate authority of your own, as NODE_EXTRA_CA_CERTS does",
  proxy_failed: "check --proxy, or HTTPS_PROXY in the environment; NO_PROXY names hosts to reach without it",
  body_too_large: "ask for smaller pages with --page-size <n>",
  list_changed: "run the command again; without --strict a list that changes is told as a warning",
  page_cap: "begin further on with --offset <n>, or take larger pages with --page-size <n>",
};

/** The error with the hint for the command line; one that tells how to go on keeps it. */
export function cliHint(error: AgentAuthError): AgentAuthError {
  if (error.class === "partial" || error.class === "aborted" || error.class === "usage") return error;
  const hint = Object.hasOwn(HINTS, error.code) ? HINTS[error.code] : undefined;
  const wanted = hint ?? (error.class === "auth" ? HINTS["not_authenticated"] : error.hint);
  if (wanted !== undefined) return withHint(error, wanted);
  return error.class === "unavailable" ? withHint(error, LATER) : error;
}
