import { AgentAuthError } from "../../errors.js";
import { quote, type Secret } from "../../redact.js";
import { readClaims } from "../token/jwt-claims.js";

/** An identity provider that vouches for people at other issuers. */
export interface IdentityProvider {
  /** Its token endpoint: https, or http to this machine. */
  tokenEndpoint: string;
  /** The client that it knows us by. */
  clientId: string;
  /** That client's secret, where it has one. */
  clientSecret?: string | Secret | undefined;
  /** Its issuer identifier. Default: the origin of its token endpoint. */
  issuer?: string | undefined;
}

/**
 * A grant that needs nobody to sign in. What proves it is asked for anew at each use: an assertion in a file may have been
 * renewed since.
 *
 * - `client_credentials`: the client in its own name (RFC 6749 section 4.4)
 * - `jwt_bearer`: an assertion of somebody whom the issuer trusts (RFC 7523 section 2.1), such as a platform's token of a
 *   workload
 * - `id_jag`: the id token of a person whose company's identity provider decides (enterprise-managed authorization)
 */
export type MachineGrant = (
  | { type: "client_credentials" }
  | { type: "jwt_bearer"; assertion: () => string | Promise<string> }
  | { type: "id_jag"; idToken: () => string | Promise<string>; idp: IdentityProvider }
) & {
  /** The issuer that it is for, as `client.issuer`: nothing that proves the grant is sent for any other. */
  issuer?: string | undefined;
};

/** The names of the grants. */
export type MachineGrantType = MachineGrant["type"];

/** Who a machine grant speaks for at this moment. */
export interface MachineIdentity {
  /** The account under which its tokens are kept, apart from those of people. */
  account: string;
  /** The assertion or the id token, where the grant has one. */
  proof: string | undefined;
}

const PREFIX = "grant:";
const ACCOUNT = /^grant:(client_credentials|jwt_bearer|id_jag):(.+?)(?::[0-9a-f]{16})?$/s;

/** Reads what proves the grant, and tells under which account its tokens are kept. */
export async function identify(grant: MachineGrant, clientId: string): Promise<MachineIdentity> {
  const account = `${PREFIX}${grant.type}:${clientId}`;
  if (grant.type === "client_credentials") return { account, proof: undefined };
  const proof = (grant.type === "jwt_bearer" ? await grant.assertion() : await grant.idToken()).trim();
  const idp = grant.type === "id_jag" ? [grant.idp.tokenEndpoint, grant.idp.clientId] : [];
  const print = await fingerprint([...idp, ...identityOf(proof)]);
  return { account: `${account}:${print}`, proof };
}

/** Whom a proof speaks for. Nobody has verified it: it only keeps apart what is kept. */
function identityOf(proof: string): unknown[] {
  const { iss, sub } = readClaims(proof)?.claims ?? {};
  return iss === undefined && sub === undefined ? [proof] : [iss, sub];
}

async function fingerprint(parts: readonly unknown[]): Promise<string> {
  return (await sha256(JSON.stringify(parts))).slice(0, 16);
}

/** SHA-256 in hexadecimal digits. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether an account is one under which tokens of a machine grant are kept. */
export function isMachineAccount(account: string | undefined): account is string {
  return account?.startsWith(PREFIX) ?? false;
}

/** The grant that an account stands for; undefined for the account of a person. */
export function machineGrantOf(account: string | undefined): MachineGrantType | undefined {
  return ACCOUNT.exec(account ?? "")?.[1] as MachineGrantType | undefined;
}

/** The flag that names a grant on the command line. */
export function grantFlag(type: MachineGrantType): string {
  return `--grant ${type.replace("_", "-")}`;
}

/** The error for a sign-in where a machine grant is to be used. */
export function noSignIn({ type }: MachineGrant): AgentAuthError {
  return new AgentAuthError("usage", `${grantFlag(type)} signs nobody in`, {
    class: "usage",
    hint: `a token comes by: agentauth token <mcp_url> ${grantFlag(type)}`,
  });
}

/** The error where a machine has no token yet that something could be done with. */
export function noToken(server: string): AgentAuthError {
  return new AgentAuthError("login_required", `no token of this grant is kept for ${quote(server)}`, {
    class: "auth",
    hint: "agentauth token <mcp_url> with the same flags gets one",
  });
}

/** The error for a sign-in with an account of a machine, as which no person can sign in. */
export function noPerson(account: string): AgentAuthError {
  const type = machineGrantOf(account);
  const flag = type === undefined ? "--grant <grant>" : grantFlag(type);
  return new AgentAuthError(
    "usage",
    `the account ${quote(account)} is that of a machine grant: nobody can sign in as it`,
    {
      class: "usage",
      hint: `a token comes by: agentauth token <mcp_url> ${flag}`,
    },
  );
}
