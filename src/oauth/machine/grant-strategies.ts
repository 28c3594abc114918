import { type Advice, AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import { quote } from "../../redact.js";
import type { ClientRecord } from "../model/grant.js";
import { hashValues } from "../model/hash.js";
import type { MachineGrant, MachineGrantOf, MachineGrantType } from "../model/machine-grant.js";
import { buildMachineAccount } from "../model/machine-grant.js";
import { readClaims } from "../token/token-checks.js";

export interface Proof {
  /** The id token, if it says so. */
  text?: string;
  /** What else tells the stored tokens of one from those of another. */
  source: readonly string[];
}

/** Everything that differs from one type of machine grant to another. Methods, so that one type holds all of them. */
export interface GrantStrategy<Type extends MachineGrantType = MachineGrantType> {
  readonly type: Type;
  /** Its name on the command line and in `status`. */
  readonly flag: string;
  readonly description: string;
  /** The extension of MCP that defines it, if one does. */
  readonly extension?: string;
  /** Reads whom the grant is for; absent for a grant that only the client's own authentication proves. */
  proof?(grant: MachineGrantOf<Type>): Promise<Proof>;
  /** What helps against an error of the issuer, if that differs from other grants. */
  explain?(code: string, grant: MachineGrantOf<Type>): Advice | undefined;
}

/** The strategies of all machine grants: flags, completion, `status` and the schemas derive from this table. */
export const GRANT_STRATEGIES = {
  client_credentials: {
    type: "client_credentials",
    flag: "client-credentials",
    description: "the client on its own behalf (RFC 6749 section 4.4)",
    extension: "io.modelcontextprotocol/oauth-client-credentials",
  },
  jwt_bearer: {
    type: "jwt_bearer",
    flag: "jwt-bearer",
    description: "an assertion that the issuer trusts (RFC 7523)",
    proof: async ({ workload }) => ({ source: [typeof workload === "string" ? workload : workload()] }),
    explain(code) {
      if (code !== "invalid_grant") return undefined;
      const hint =
        "the assertion must be current, for this issuer, not used before, and from a party that the issuer trusts";
      return { hint, remedy: { action: "configure", option: "assertion" } };
    },
  },
  id_jag: {
    type: "id_jag",
    flag: "id-jag",
    description: "an id token of the company's identity provider (enterprise-managed authorization)",
    extension: "io.modelcontextprotocol/enterprise-managed-authorization",
    proof: async ({ idToken, idp }) => ({ text: await idToken(), source: [idp.tokenEndpoint, idp.clientId] }),
    explain(code, { idp, subject }) {
      if (code !== "invalid_grant") return undefined;
      if (subject === undefined) {
        const hint = "log in again at the identity provider, and give its new id token";
        return { hint, remedy: { action: "configure", option: "idToken" } };
      }
      const name = quote(idp.issuer ?? idp.tokenEndpoint);
      return {
        hint: `ask the administrators of the server whether its issuer trusts ${name} and knows the user and the client`,
      };
    },
  },
} as const satisfies { [Type in MachineGrantType]: GrantStrategy<Type> };

export type GrantFlag = (typeof GRANT_STRATEGIES)[MachineGrantType]["flag"];

/** The extension of MCP that a connection uses whose tokens come by the grant; undefined for a login and for other grants. */
export function parseExtension(grant: string | undefined): string | undefined {
  return Object.values<GrantStrategy>(GRANT_STRATEGIES).find(({ flag }) => flag === grant)?.extension;
}

export function findStrategy({ type }: Pick<MachineGrant, "type">): GrantStrategy & { flag: GrantFlag } {
  return GRANT_STRATEGIES[type];
}

export interface RequestingClient {
  grant: MachineGrant;
  client: ClientRecord;
}

/** The issuer's error with a hint that fits the grant: no user could log in instead. */
export function machineFailure(thrown: unknown, requested: RequestingClient): unknown {
  if (!isAgentAuthError(thrown) || thrown.hint !== undefined || thrown.remedy !== undefined) return thrown;
  const { hint, remedy } =
    findStrategy(requested.grant).explain?.(thrown.code, requested.grant) ?? commonAdvice(thrown.code, requested);
  return hint === undefined ? thrown : withHint(thrown, hint, remedy);
}

function commonAdvice(code: string, { grant, client }: RequestingClient): Advice {
  switch (code) {
    case "invalid_client":
      return clientAdvice(grant, client);
    case "unauthorized_client":
      if (client.clientId === "") return clientAdvice(grant, client);
      return { hint: `the client ${quote(client.clientId)} has to be allowed the grant ${grant.type} at the issuer` };
    case "unsupported_grant_type":
      return {
        hint: `the issuer does not do the grant ${grant.type}`,
        remedy: { action: "inspect", subject: "grants" },
      };
    case "invalid_scope":
      return {
        hint: "ask for scopes that the issuer gives this client",
        remedy: { action: "configure", option: "scope" },
      };
    default:
      return {};
  }
}

/** Which client to check, and what it authenticates with; the client at the identity provider may be wrong as well. */
function clientAdvice(grant: MachineGrant, { clientId, authMethod }: ClientRecord): Advice {
  if (clientId === "") {
    const hint = "set client.clientId: the issuer requires a client for this grant";
    return { hint, remedy: { action: "configure", option: "clientId" } };
  }
  const option = authMethod === "private_key_jwt" ? "privateKey" : authMethod === "none" ? "clientId" : "clientSecret";
  const what = `client ${quote(clientId)}${option === "clientId" ? "" : ` and its ${option}`}`;
  return {
    hint: `check the ${what}`,
    remedy: { action: "configure", option, clientId, ...("idp" in grant && { also: "idp" }) },
  };
}

export interface MachineIdentity {
  /** The account under which its tokens are stored, apart from those of users. */
  account: string;
  /** The id token, if the grant has one. */
  proof: string | undefined;
}

/** Reads the proof of the grant and derives the account under which its tokens are stored. */
export async function identify(grant: MachineGrant, clientId: string): Promise<MachineIdentity> {
  const read = await findStrategy(grant).proof?.(grant);
  if (read === undefined) return { account: buildMachineAccount(grant.type, clientId), proof: undefined };
  const proof = read.text?.trim();
  return { account: buildMachineAccount(grant.type, clientId, await fingerprintSource(read.source, proof)), proof };
}

/** The hash of whom a grant is for, as it is at the end of the account. */
export function fingerprintSource(source: readonly string[], proof?: string): Promise<string> {
  return hashValues(...source, ...(proof === undefined ? [] : readSubject(proof)));
}

/** The subject of a proof, else the proof. It is not verified: it only keeps the stored tokens of several subjects apart. */
export function readSubject(proof: string): unknown[] {
  const { iss, sub } = readClaims(proof)?.claims ?? {};
  return iss === undefined && sub === undefined ? [proof] : [iss, sub];
}

export function noInteractiveLoginError({ type }: MachineGrant): AgentAuthError {
  const message = `the grant ${type} has no interactive login`;
  const hint = "token() gets a token";
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy: { action: "token", grant: type } });
}

export function noStoredTokenError(server: string): AgentAuthError {
  const message = `no token of this grant is stored for ${quote(server)}`;
  const hint = "token() gets one";
  return new AgentAuthError("login_required", message, { class: "auth", hint, remedy: { action: "token" } });
}
