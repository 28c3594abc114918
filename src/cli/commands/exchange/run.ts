import { usageError } from "../../../errors.js";
import { parseUrl } from "../../../http/address.js";
import type { ExchangedToken } from "../../../oauth/token/exchange.js";
import { quote } from "../../../redact.js";
import { readSecret } from "../../clients/grant.js";
import { parseMcpUrlArgument } from "../../clients/login-first.js";
import { formatToken, UNKNOWN_ASKER } from "../../clients/token-formats.js";
import type { AgentFlags } from "../../flags/agent.js";
import type { CommandContext } from "../../runtime/context.js";

export interface ExchangeFlags extends Omit<AgentFlags, "output" | "resource"> {
  url: string;
  audience?: string[];
  resource?: string[];
  subjectTokenFile?: string;
  subjectTokenType?: string;
  format?: "raw" | "header" | "headers-json" | "json" | "env";
}

/** `exchange`: prints the new token and nothing else; nothing at all if the exchange fails. */
export async function runExchange(options: ExchangeFlags, context: CommandContext): Promise<undefined> {
  const { audience, resource, scope, format = "raw", ...flags } = options;
  const url = parseMcpUrlArgument(options.url);
  if (audience === undefined && resource === undefined)
    throw usageError("--audience or --resource is required", "add --audience <name>, or --resource <uri>");
  const subjectTokenType = toTokenType(options.subjectTokenType);
  // Checks the flags before any secret is read from standard input.
  const agent = await context.with({ flags }).agent();
  const subjectToken = await readSecret(options, "subjectTokenFile", "AGENTAUTH_SUBJECT_TOKEN", context);
  if (subjectTokenType !== undefined && subjectToken === undefined)
    throw usageError(
      "--subject-token-type needs a subject token",
      "set AGENTAUTH_SUBJECT_TOKEN, or add --subject-token-file <file>",
    );
  const request = { subjectTokenType, audience, resource, scope, subjectToken, signal: context.signal };
  const token = await agent.exchange(url, request);
  context.redactor.add(token.value);
  await context.io.stdout.write(renderToken(token, format, context.now()));
}

const TYPE = "urn:ietf:params:oauth:token-type:";
const SHORT = ["access_token", "id_token", "refresh_token", "jwt", "saml1", "saml2", "id-jag"];

/** The URI of a token type: the short name of a type of RFC 8693, or the URI itself. */
function toTokenType(value: string | undefined): string | undefined {
  if (value === undefined || (parseUrl(value) !== undefined && !/\s/.test(value))) return value;
  if (SHORT.includes(value)) return TYPE + value;
  throw usageError(
    `--subject-token-type ${quote(value, 80)} is not a token type`,
    `one of ${SHORT.join(", ")}, or a URI`,
  );
}

/** The output of `exchange --format json`. */
interface PrintedToken {
  /** The token, whatever its type; a secret. */
  access_token: string;
  /** The URI of its type (RFC 8693 section 3). */
  issued_token_type: string;
  /** How it is used: `Bearer`, or `N_A` if it is not an access token. */
  token_type: string;
  /** When it expires; null if the issuer did not say. */
  expires_at: string | null;
  /** Seconds until it expires, from when it was printed. */
  expires_in: number | null;
  /** Its scopes, separated by blanks; null if the issuer did not say. */
  scope: string | null;
  /** The authorization server. */
  issuer: string;
}

function renderToken(token: ExchangedToken, format: NonNullable<ExchangeFlags["format"]>, now: number): string {
  const { issuedTokenType, tokenType, expiresAt, scope, issuer } = token;
  if (tokenType === "N_A" && (format === "header" || format === "headers-json")) {
    const what = issuedTokenType.replace(TYPE, "");
    throw usageError(
      `the token is not an access token but ${quote(what, 80)}, and cannot be sent in a header`,
      "use --format raw, or json",
    );
  }
  if (format !== "json") return formatToken(format, token, { now, ...UNKNOWN_ASKER });
  const left = expiresAt && Math.max(0, Math.floor((expiresAt.getTime() - now) / 1000));
  return `${JSON.stringify({
    access_token: token.value,
    issued_token_type: issuedTokenType,
    token_type: tokenType,
    expires_at: expiresAt?.toISOString() ?? null,
    expires_in: left ?? null,
    scope: scope ?? null,
    issuer,
  } satisfies PrintedToken)}\n`;
}
