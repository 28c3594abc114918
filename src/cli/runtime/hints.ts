import { type AgentAuthError, withHint } from "../../errors.js";

const GIVE_TOKEN = "set AGENTAUTH_API_TOKEN, or store a token: agentauth config set api_token - < token.txt";

/** The library's hints that name its own options or none, and what they are on the command line. */
const IN_FLAGS: Readonly<Record<string, string>> = {
  "give an API token": `give an API token: ${GIVE_TOKEN}`,
  "give a valid API token": `give a valid API token: ${GIVE_TOKEN}`,
  "the API token is wrong or has expired; give a valid one": `the API token is wrong or has expired; ${GIVE_TOKEN}`,
  "a certificate of your own authority is trusted through NODE_EXTRA_CA_CERTS":
    "--ca-file <file> trusts a certificate authority of your own, as NODE_EXTRA_CA_CERTS does",
  "use a client certificate that the server accepts":
    "--client-cert <file> gives a client certificate, --client-key <file> its key where that is in another file",
  "ask for smaller pages": "ask for smaller pages with --page-size <n>",
  "allow more with maxPages": "begin further on with --offset <n>, or take larger pages with --page-size <n>",
  "use 127.0.0.1, or set allowNonLoopback": "use 127.0.0.1, or give --allow-non-loopback",
};

/** What helps where the library says nothing. */
const OTHERWISE: Readonly<Record<string, string>> = {
  timeout: "--timeout <seconds> allows more time, --retries <n> more attempts",
  proxy_failed: "check --proxy, or HTTPS_PROXY in the environment; NO_PROXY names hosts to reach without it",
  not_found: "the device must be one of that pool: agentauth devices list --pool <pool_id> -o id",
  list_changed: "run the command again; without --strict a list that changes is told as a warning",
};

const LATER = "call again later, or allow more attempts with --retries <n>";

/** The error with a hint for the command line; one that names a command already stays as it is. */
export function cliHint(error: AgentAuthError): AgentAuthError {
  const better = error.hint === undefined ? missingHint(error) : own(IN_FLAGS, error.hint);
  return better === undefined ? error : withHint(error, better);
}

function missingHint({ code, class: kind }: AgentAuthError): string | undefined {
  return own(OTHERWISE, code) ?? (kind === "unavailable" ? LATER : undefined);
}

function own(record: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
