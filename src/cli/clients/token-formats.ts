import { usageError } from "../../errors.js";
import type { AccessToken } from "../../oauth/model/grant.js";
import { quotedForPowershell } from "../../platform.js";
import { posixWord, quote, shellWord } from "../../redact.js";
import type { TokenFlags } from "../flags/agent.js";

export type TokenFormat = NonNullable<TokenFlags["format"]>;

/** What the caller of `token` supports, as far as it changes the output. */
export interface Asker {
  /** Milliseconds since the epoch. */
  now: number;
  /** Whether git takes a token as what it is (`capability[]=authtype`, git 2.46), and not only as a password. */
  authtype: boolean;
  /** The requested version of `ExecCredential`. */
  apiVersion: string;
}

/** A caller that declares nothing is taken for an up-to-date one. */
export const UNKNOWN_ASKER: Omit<Asker, "now"> = { authtype: true, apiVersion: "client.authentication.k8s.io/v1" };

type Printable = Pick<AccessToken, "value" | "expiresAt" | "scope" | "issuer"> &
  Partial<Pick<AccessToken, "resource">> & { readonly tokenType: string };

/** The output of `token --format json`. */
interface PrintedToken {
  /** The token; a secret. */
  access_token: string;
  /** Its type: `DPoP` requires a proof of its key with every request (RFC 9449). */
  token_type: "Bearer" | "DPoP";
  /** When it expires; null if the issuer did not say. */
  expires_at: string | null;
  /** Seconds until it expires, from when it was printed. */
  expires_in: number | null;
  /** Its scopes, separated by blanks; null if the issuer did not say. */
  scope: string | null;
  /** The resource that it is for. */
  resource: string;
  /** The authorization server. */
  issuer: string;
}

type Format = (token: Printable, asker: Asker) => string;

const json = (value: unknown) => `${JSON.stringify(value)}\n`;

/** The text that passes a token on; it ends with a line break. */
export function formatToken(format: TokenFormat, token: Printable, asker: Asker): string {
  return FORMATS[format](token, asker);
}

const FORMATS: Readonly<Record<TokenFormat, Format>> = {
  raw: ({ value }) => `${value}\n`,
  header: ({ value }) => `Authorization: Bearer ${value}\n`,
  "headers-json": ({ value }) => json({ Authorization: `Bearer ${value}` }),
  json: (token, { now }) =>
    json({
      access_token: token.value,
      token_type: token.tokenType,
      expires_at: token.expiresAt?.toISOString() ?? null,
      expires_in:
        token.expiresAt === undefined ? null : Math.max(0, Math.floor((token.expiresAt.getTime() - now) / 1000)),
      scope: token.scope ?? null,
      resource: token.resource,
      issuer: token.issuer,
    } satisfies Record<keyof PrintedToken, unknown>),
  env: ({ value }) => `AGENTAUTH_TOKEN=${/^[\w.+/-][\w.~+/=-]*$/.test(value) ? value : posixWord(value)}\n`,
  powershell: ({ value }) => `$env:AGENTAUTH_TOKEN = ${quotedForPowershell(value)}\n`,
  cmd: ({ value }) => `set "AGENTAUTH_TOKEN=${plainForCmd(value)}"\n`,
  k8s: ({ value, expiresAt }, { apiVersion }) =>
    json({
      apiVersion,
      kind: "ExecCredential",
      status: { token: value, ...(expiresAt && { expirationTimestamp: wholeSeconds(expiresAt) }) },
    }),
  git: ({ value, expiresAt }, { authtype }) =>
    [
      ...(authtype
        ? // Helpers that store what git got from another one leave an ephemeral credential out.
          ["capability[]=authtype", "authtype=Bearer", "ephemeral=1", `credential=${value}`]
        : ["username=agentauth", `password=${value}`]),
      ...(expiresAt ? [`password_expiry_utc=${Math.floor(expiresAt.getTime() / 1000)}`] : []),
      "",
    ].join("\n"),
  bazel: ({ value, expiresAt }) =>
    json({ headers: { Authorization: [`Bearer ${value}`] }, ...(expiresAt && { expires: wholeSeconds(expiresAt) }) }),
};

/** cmd.exe has no quotes that hold every character: only what bearer tokens are made of is written for it. */
function plainForCmd(value: string): string {
  if (/^[\w.~+/=-]+$/.test(value)) return value;
  throw usageError("the token has characters that cmd.exe may interpret", "use --format raw, or agentauth exec");
}

/** RFC 3339 without a fraction, which some readers reject. */
function wholeSeconds(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}

/**
 * A token that is bound to a key needs a proof of that key with every request: a program that gets the token alone would be
 * rejected everywhere, without knowing why.
 *
 * @throws `AgentAuthError` class `usage` for such a token
 */
export function checkHandOver({ tokenType, server }: Pick<AccessToken, "tokenType" | "server">, how: string): void {
  if (tokenType === "Bearer") return;
  throw usageError(
    `the token for ${quote(server)} is bound to a key of this machine (DPoP, RFC 9449), and ${how} hands over the token alone`,
    `agentauth request ${shellWord(server)} and agentauth mcp prove the key; token --format json says of what type the token is`,
  );
}
