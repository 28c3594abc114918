import { type AgentAuthError, usageError } from "../../errors.js";
import { storingToken } from "../../profile/service-settings.js";
import type { Redactor } from "../../redact.js";

const giveApiToken = () => `set AGENTAUTH_API_TOKEN, or keep it: ${storingToken()}`;
const GIVE_CLIENT_SECRET = "set AGENTAUTH_CLIENT_SECRET, or give --client-secret-file <file> (- reads stdin)";
const GIVE_ELSEWHERE = "give it in the environment, on stdin or in a private file: agentauth help environment";

// Flags that a user may try, each with what to use instead. The exact name first, then its last word.
const REMEDIES: Readonly<Record<string, string | (() => string)>> = {
  "client-secret": GIVE_CLIENT_SECRET,
  "id-token": "set AGENTAUTH_ID_TOKEN, also to file:<path>",
  "idp-client-secret": "set AGENTAUTH_IDP_CLIENT_SECRET, also to file:<path>",
  "subject-token": "set AGENTAUTH_SUBJECT_TOKEN, or give --subject-token-file <file> (- reads stdin)",
  "refresh-token": "agentauth login stores it, and nothing else needs it",
  token: giveApiToken,
  "api-key": giveApiToken,
  apikey: giveApiToken,
  bearer: giveApiToken,
  authorization: giveApiToken,
  auth: giveApiToken,
  "store-url": "set AGENTAUTH_STORE_URL, or keep it: agentauth config set store_url file:<path>",
  "store-keys": "set AGENTAUTH_STORE_KEYS, or keep them: agentauth config set store_keys file:<path>",
  secret: GIVE_CLIENT_SECRET,
  password: GIVE_ELSEWHERE,
  passwd: GIVE_ELSEWHERE,
  pass: GIVE_ELSEWHERE,
  passphrase: GIVE_ELSEWHERE,
  credential: GIVE_ELSEWHERE,
  credentials: GIVE_ELSEWHERE,
  "client-assertion": "give --assertion <source>, such as file:<path>",
  verifier: GIVE_ELSEWHERE,
  code: "agentauth login <mcp_url> --flow paste reads it without showing it",
  jwt: GIVE_ELSEWHERE,
};

/**
 * The error for an unknown flag that is named like a secret: no flag of ours takes one, since a command line can be read
 * by every program of the user and stays in the shell's history.
 *
 * @param flag as it was typed, with or without `=value`
 * @returns undefined for any other flag
 */
export function secretFlagError(flag: string): AgentAuthError | undefined {
  const name = flagName(flag);
  const words = name
    .slice(2)
    .replace(/([a-z\d])([A-Z])/g, "$1-$2")
    .replaceAll("_", "-")
    .toLowerCase();
  const remedy = ownFlag(words) ?? ownFlag(words.slice(words.lastIndexOf("-") + 1));
  if (!name.startsWith("--") || remedy === undefined) return undefined;
  return usageError(
    `${name}: a secret must not be on the command line, where other programs can read it and the shell stores it`,
    `${remedy}; and revoke the one that was typed here`,
  );
}

/** A flag as it was typed, without its value. */
function flagName(flag: string): string {
  return flag.split("=", 1)[0] ?? "";
}

function ownFlag(name: string): string | undefined {
  const remedy = Object.hasOwn(REMEDIES, name) ? REMEDIES[name] : undefined;
  return typeof remedy === "function" ? remedy() : remedy;
}

// A JSON Web Token, and a token of the sandbox.
const TOKEN_LIKE = /^(?:bearer\s+)?(?:eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|sandbox_[\w-]{20,})$/i;

/** Masks in every message what is on a command line by mistake: words that are tokens, values of secret flags. */
export function hideSecretWords(argv: readonly string[], redactor: Pick<Redactor, "add">): void {
  for (const [index, word] of argv.entries()) {
    const [name, value] = [flagName(word), word.slice(flagName(word).length + 1)];
    if (TOKEN_LIKE.test(word)) redactor.add(word);
    if (name === "--callback-url") hideCode(value || (argv[index + 1] ?? ""), redactor);
    if (!word.startsWith("--") || secretFlagError(name) === undefined) continue;
    redactor.add(value);
    const next = argv[index + 1];
    if (value === "" && next !== undefined && !next.startsWith("-")) redactor.add(next);
  }
}

function hideCode(callback: string, redactor: Pick<Redactor, "add">): void {
  redactor.add(callback);
  redactor.add(new URLSearchParams(callback.slice(callback.indexOf("?") + 1)).get("code") ?? "");
}
