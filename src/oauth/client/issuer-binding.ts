import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { issuerMismatchError } from "../discovery/issuer-choice.js";
import type { Progress } from "../http/http.js";
import type { Grant } from "../model/grant.js";
import type { BoundBy, ClientBinding, GrantStore } from "../model/grant-store.js";
import { isMachineAccount } from "../model/machine-grant.js";
import { isSameIssuer } from "../model/metadata.js";
import type { PreRegisteredClient } from "./client-auth.js";

/** The question to the user before the secret of a client is sent to an issuer for the first time. */
export interface IssuerQuestion {
  /** The client. */
  clientId: string;
  /** The issuer that the MCP server names. */
  issuer: string;
  /** The MCP server. */
  server: string;
}

/** How the issuer of a client is determined. */
export interface IssuerTrust {
  /**
   * The only issuer to accept, even if a server names others; takes precedence over a stored binding. A login uses the
   * metadata that it publishes, else those of the issuer that the server names if they name this one and all their
   * endpoints have one origin.
   */
  issuer?: string | undefined;
  /** Accepts the issuer that the server names if the client is bound to none yet, and binds the client to it. */
  trustNamedIssuer?: boolean | undefined;
  /**
   * Asks the user who logs in with a secret or a key whether the client belongs to the issuer. Without it such a login
   * is refused if no issuer is known.
   */
  confirmIssuer?: ((question: IssuerQuestion, signal: AbortSignal | undefined) => Promise<boolean>) | undefined;
}

export interface BindingContext {
  store: GrantStore;
  profile: string;
  clock: { epoch(): number };
  trust: IssuerTrust;
  onProgress?: ((progress: Progress) => void) | undefined;
}

export interface ClientUse {
  client: PreRegisteredClient;
  issuer: string;
  /** The MCP server that named it. */
  server: string;
  /** The credential that would be sent there, as text; undefined for a public client. */
  credential: string | undefined;
  /** Whether this is a login of the user, who can be asked. */
  isInteractive: boolean;
  signal: AbortSignal | undefined;
}

/** The credential of a client, as text; undefined for a public client. */
export function fingerprintCredential({ clientSecret, privateKey }: PreRegisteredClient): string | undefined {
  if (privateKey !== undefined) return "an assertion of its private key";
  return clientSecret === undefined ? undefined : "its secret";
}

/**
 * Checks that a pre-registered client belongs to an issuer, before any of its data is sent: the issuer that the user
 * names, else the one that the client is bound to, else the issuers of its earlier logins. If only the MCP server names
 * one, no credential is sent without a one-time consent of the user.
 *
 * @throws `AgentAuthError` `issuer_mismatch` if the user names another issuer, `issuer_changed` if the client is bound
 * to another one, `issuer_unbound` if it is bound to none
 */
export async function holdToIssuer(context: BindingContext, use: ClientUse): Promise<void> {
  const { client, issuer, credential } = use;
  const { trust, store, profile } = context;
  if (trust.issuer !== undefined) {
    if (!isSameIssuer(trust.issuer, issuer)) throw issuerMismatchError(trust.issuer, [issuer], use.server);
    return credential === undefined ? undefined : bindOrReport(context, use, "issuer");
  }
  const bound = await store.readBinding({ profile, clientId: client.clientId });
  if (bound !== undefined && !isSameIssuer(bound.issuer, issuer))
    throw issuerChangedError(client.clientId, bound.issuer, issuer);
  if (bound !== undefined && (credential === undefined || bound.boundBy !== "use")) return undefined;
  const earlier = bound === undefined ? await earlierLogins(context, client.clientId) : [];
  const [first] = earlier;
  if (first !== undefined && earlier.every((grant) => !isSameIssuer(grant.issuer, issuer)))
    throw issuerChangedError(client.clientId, first.issuer, issuer);
  if (credential === undefined) return undefined;
  if (earlier.some((grant) => isSameIssuer(grant.issuer, issuer) && showsTrust(grant))) {
    // Only the user can have named several issuers, and a binding holds one.
    const isSingle = earlier.every((grant) => isSameIssuer(grant.issuer, issuer));
    return isSingle ? bindOrReport(context, use, "earlier-login") : undefined;
  }
  if (trust.trustNamedIssuer) return bindClient(context, use, "trust-named-issuer");
  const { confirmIssuer } = use.isInteractive ? trust : { confirmIssuer: undefined };
  if (confirmIssuer === undefined) throw issuerUnboundError(profile, use);
  const { clientId } = client;
  if (!(await confirmIssuer({ clientId, issuer, server: use.server }, use.signal)))
    throw issuerUnboundError(profile, use);
  return bindClient(context, use, "confirmation");
}

/** Binds the client of a finished login to its issuer, if it is bound to none. */
export async function bindUsedClient(context: Omit<BindingContext, "trust">, grant: Grant): Promise<void> {
  const { client, issuer } = grant;
  const { store, profile, clock } = context;
  if (client.source !== "pre-registered" || client.clientId === "") return;
  const key = { profile, clientId: client.clientId };
  await reportStoreFailure(context, key.clientId, async () => {
    if ((await store.readBinding(key)) !== undefined) return;
    const boundBy = showsTrust(grant) ? "earlier-login" : "use";
    await store.saveBinding({ ...key, issuer, boundBy, boundAt: clock.epoch() }, undefined);
  });
}

/** Removes the binding of the client of a login that has ended, if no other login has that client. */
export async function releaseClient(store: GrantStore, { profile, account, client }: Grant): Promise<void> {
  // A workload without a client is bound by its account.
  const clientId = client.clientId || account;
  if (client.source !== "pre-registered" || clientId === undefined) return;
  try {
    const others = await earlierLogins({ store, profile }, clientId);
    if (others.length === 0) await store.removeBinding({ profile, clientId });
  } catch (error) {
    // A binding that stays sends nothing anywhere.
    if (!isAgentAuthError(error)) throw error;
  }
}

/** Whether a login shows that the user trusts its issuer with a credential of the client. */
function showsTrust({ client, account }: Pick<Grant, "client" | "account">): boolean {
  return client.authMethod !== "none" || isMachineAccount(account);
}

/** The stored logins of a client, which say where it belongs if no binding could be stored. */
async function earlierLogins({ store, profile }: Pick<BindingContext, "store" | "profile">, clientId: string) {
  const grants = await store.list({ profile });
  return grants.filter(({ client }) => client.source === "pre-registered" && client.clientId === clientId);
}

/** Binds a client, unless another process has bound it in the meantime: that binding then counts. */
async function bindClient(context: BindingContext, { client, issuer }: ClientUse, boundBy: BoundBy): Promise<void> {
  const { store, profile, clock } = context;
  const { clientId } = client;
  const before = await store.readBinding({ profile, clientId });
  if (before?.issuer === issuer && before.boundBy !== "use") return;
  const binding: ClientBinding = { profile, clientId, issuer, boundBy, boundAt: clock.epoch() };
  const stored = await store.saveBinding(binding, before);
  if (isSameIssuer(stored.issuer, issuer)) return;
  throw issuerChangedError(clientId, stored.issuer, issuer);
}

/** Binds a client whose issuer is known: a read-only store is reported, not refused. */
function bindOrReport(context: BindingContext, use: ClientUse, boundBy: BoundBy): Promise<void> {
  return reportStoreFailure(context, use.client.clientId, () => bindClient(context, use, boundBy));
}

async function reportStoreFailure(
  { store, onProgress }: Pick<BindingContext, "store" | "onProgress">,
  clientId: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isAgentAuthError(error) || error.class !== "store") throw error;
    const text = `the issuer of the client ${quote(clientId)} cannot be stored in ${store.location}: ${error.message}`;
    onProgress?.({ subject: "login", text });
  }
}

/** A workload without a client is bound by its account. */
function describeClient(clientId: string): string {
  return `the ${isMachineAccount(clientId) ? "workload" : "client"} ${quote(clientId)}`;
}

/** The error for a client that is bound to another issuer than the one that the server names. */
function issuerChangedError(clientId: string, own: string, issuer: string): AgentAuthError {
  const message = `${describeClient(clientId)} belongs to ${quote(own)}, but the server now names ${quote(issuer)}; it is not used there`;
  const hint =
    "use a client of the other authorization server; if the client has moved, disconnect its logins, or name its issuer";
  const remedy = { action: "configure", option: "clientId", clientId } as const;
  return new AgentAuthError("issuer_changed", message, { class: "auth", hint, remedy });
}

function issuerUnboundError(profile: string, { client: { clientId }, issuer, server, credential }: ClientUse) {
  const what = `${describeClient(clientId)} is not bound to an issuer, and ${quote(server)} names ${quote(issuer)}`;
  const message = `${what}: ${credential ?? "nothing"} is not sent there`;
  const hint = "if this is the issuer of the client, set client.issuer; confirmIssuer can ask the user";
  const remedy = { action: "configure", option: "issuer", value: issuer, profile } as const;
  return new AgentAuthError("issuer_unbound", message, { class: "refused", hint, remedy });
}
