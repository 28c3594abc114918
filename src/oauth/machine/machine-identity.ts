import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { type MachineGrant, machineAccountOf } from "../model/machine-grant.js";
import { readClaims } from "../token/token-checks.js";
import { strategyOf } from "./grant-strategies.js";

/** The identity that a machine grant acts for at this moment. */
export interface MachineIdentity {
  /** The account under which its tokens are stored, apart from those of users. */
  account: string;
  /** The id token, if the grant has one. */
  proof: string | undefined;
}

/** Reads the proof of the grant and derives the account under which its tokens are stored. */
export async function identify(grant: MachineGrant, clientId: string): Promise<MachineIdentity> {
  const read = await strategyOf(grant).proof?.(grant);
  if (read === undefined) return { account: machineAccountOf(grant.type, clientId), proof: undefined };
  const proof = read.text?.trim();
  return { account: machineAccountOf(grant.type, clientId, await fingerprintOf(read.source, proof)), proof };
}

/** The hash of whom a grant is for, as it is at the end of the account. */
export function fingerprintOf(source: readonly string[], proof?: string): Promise<string> {
  return hashSha256(JSON.stringify([...source, ...(proof === undefined ? [] : subjectOf(proof))]));
}

/** The subject of a proof, else the proof. It is not verified: it only keeps the stored tokens of several subjects apart. */
export function subjectOf(proof: string): unknown[] {
  const { iss, sub } = readClaims(proof)?.claims ?? {};
  return iss === undefined && sub === undefined ? [proof] : [iss, sub];
}

/** SHA-256 in hexadecimal digits. */
export async function hashSha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The error for an interactive login with a machine grant. */
export function noInteractiveLoginError({ type }: MachineGrant): AgentAuthError {
  const message = `the grant ${type} has no interactive login`;
  const hint = "token() gets a token";
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy: { action: "token", grant: type } });
}

/** The error for a machine grant that has no stored token yet. */
export function noStoredTokenError(server: string): AgentAuthError {
  const message = `no token of this grant is stored for ${quote(server)}`;
  const hint = "token() gets one";
  return new AgentAuthError("login_required", message, { class: "auth", hint, remedy: { action: "token" } });
}
