import { AgentAuthError } from "../../errors.js";
import { checkAddress, type PeerPolicy } from "../../http/address-class.js";
import { refusalError } from "../../http/refuse.js";
import { quote } from "../../redact.js";
import type { Remedy } from "../../remedy.js";
import type { Grant } from "../model/grant.js";
import { isSameIssuer } from "../model/metadata.js";

export interface IssuerExpectation {
  /** The issuer that the user names for a login, also where the server names another one; never that of a machine. */
  chosenIssuer?: string | undefined;
  /** The only issuer to accept: the chosen one, else that of the client or the grant. */
  expectedIssuer?: string | undefined;
  /** Whether a credential is sent to the issuer: a secret, a key, an assertion or a token to exchange. */
  sendsCredential?: boolean | undefined;
  remembered: Pick<Grant, "issuer" | "namedIssuer"> | undefined;
  boundIssuer?: (() => Promise<string | undefined>) | undefined;
}

export interface IssuerCandidate {
  /** What its metadata must name. */
  issuer: string;
  /** What the server names, if that is another issuer. */
  namedIssuer?: string | undefined;
  /** Whether the metadata are those of `namedIssuer`, which must then assert the issuer in place of it. */
  assertsIssuer?: boolean;
}

/**
 * The issuers that may be used, in order. Where the user names another one than the server, its own metadata come
 * first, and what the server names is used only if its metadata assert the user's.
 *
 * | expected issuer | the server names it | an earlier login used it in place of a named one | chosen | candidates |
 * |---|---|---|---|---|
 * | none | | | | all that the server names |
 * | one | yes | | | that one |
 * | one | no | no | no | none: `issuer_mismatch` |
 * | one | no | yes | no | its own metadata, then those of the one that was named then |
 * | one | no | any | yes | its own metadata, then those of all that the server names |
 *
 * @param named the issuers that the server names
 * @throws `AgentAuthError` `issuer_mismatch` if the server does not name the issuer of the client, `issuer_changed` if it
 * named another one when an earlier login made an exception
 */
export function issuerCandidates(
  context: IssuerExpectation,
  named: readonly string[],
  { from, policy }: { from: string; policy: PeerPolicy },
): IssuerCandidate[] {
  const { remembered, chosenIssuer, sendsCredential } = context;
  const issuer = context.expectedIssuer ?? requiredException(context, named, from);
  if (issuer === undefined) return named.map((one) => ({ issuer: one }));
  const exact = named.find((one) => isSameIssuer(one, issuer));
  if (exact !== undefined) return [{ issuer: exact }];
  const before = named.find((one) => isException(remembered, issuer, one));
  if (chosenIssuer === undefined && before === undefined)
    throw issuerMismatchError(issuer, named, from, sendsCredential ? undefined : issuer);
  checkChosen(issuer, policy);
  // An earlier login is an exception for what the server named then, not for all that it names today.
  const asserting = chosenIssuer === undefined && before !== undefined ? [before] : named;
  return [
    { issuer, namedIssuer: before ?? named[0] },
    ...asserting.map((namedIssuer) => ({ issuer, namedIssuer, assertsIssuer: true })),
  ];
}

/** The issuer that an earlier login used in place of the named one. */
function requiredException(
  { remembered }: IssuerExpectation,
  named: readonly string[],
  from: string,
): string | undefined {
  const { issuer, namedIssuer } = remembered ?? {};
  if (issuer === undefined || namedIssuer === undefined) return undefined;
  if (named.some((one) => isSameIssuer(one, namedIssuer) || isSameIssuer(one, issuer))) return issuer;
  const message = `the login uses ${quote(issuer)} where the server named ${quote(namedIssuer)}, but ${quote(from)} now names ${quote(named.length === 1 ? named[0] : named)}`;
  const hint = "if you trust the new issuer, log out first, or name it with the option issuer";
  const remedy = { action: "configure", option: "issuer", value: named[0] } as const;
  throw new AgentAuthError("issuer_changed", message, { class: "auth", hint, remedy });
}

function isException(remembered: IssuerExpectation["remembered"], issuer: string, named: string): boolean {
  if (remembered?.namedIssuer === undefined) return false;
  return isSameIssuer(remembered.issuer, issuer) && isSameIssuer(remembered.namedIssuer, named);
}

/** Requests are sent to the chosen issuer: it must be an address that the server may name too. */
function checkChosen(issuer: string, policy: PeerPolicy): void {
  const from = "the option issuer";
  checkAddress(issuer, "issuer", from, policy);
  if (!/[?{}]/.test(issuer)) return;
  const rule = "must have neither a query (RFC 8414 section 2) nor a part in braces to be replaced";
  throw refusalError("bad_address", { field: "issuer", value: issuer, from, rule });
}

/**
 * The issuers that a server names, with that of the earlier login or of the client first: their order says nothing
 * (RFC 9728 section 7.6).
 */
export async function boundFirst(named: readonly string[], { remembered, boundIssuer }: IssuerExpectation) {
  if (named.length < 2) return named;
  const own = remembered?.issuer ?? (await boundIssuer?.());
  const isOther = (one: string) => own === undefined || !isSameIssuer(one, own);
  return [...named.filter((one) => !isOther(one)), ...named.filter(isOther)];
}

/** Whether an earlier login was at the same issuer, and used it in place of the same named one if of another. */
export function isRemembered(
  { remembered }: Pick<IssuerExpectation, "remembered">,
  { issuer, namedIssuer }: Pick<IssuerCandidate, "issuer" | "namedIssuer">,
): boolean {
  if (remembered === undefined) return false;
  if (namedIssuer !== undefined) return isException(remembered, issuer, namedIssuer);
  return remembered.namedIssuer === undefined && isSameIssuer(remembered.issuer, issuer);
}

/**
 * The error for a server that does not name the user's issuer.
 *
 * @param named the issuers that the server names
 * @param chosen the value of the option `issuer` that helps; undefined if it does not
 */
export function issuerMismatchError(issuer: string, named: readonly string[], from: string, chosen?: string) {
  const value = named.length === 1 ? named[0] : named;
  const rule = `must name ${quote(issuer)}, the issuer that is configured`;
  const remedy: Remedy = { action: "configure", option: "issuer", value: chosen };
  return refusalError("issuer_mismatch", { field: "authorization_servers", value, from, rule, remedy });
}
