import { AgentAuthError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { CodecError } from "../model/codec.js";
import type { Grant } from "../model/grant.js";
import { type GrantStore, memoryRecords } from "../model/grant-store.js";
import { hashValues } from "../model/hash.js";
import { IDP_ACCOUNT } from "../model/machine-grant.js";
import { judgeCallback, type LoginContext, type PreparedLogin, stateMismatchError } from "./authorization.js";
import { decodeMembers, loginMembers } from "./login-codec.js";
import { exchangeLogin, finishLogin, rethrowWithResourceHint } from "./login-flow.js";
import { cookieNames, readCookie, type StartedLogin, setCookie } from "./web-app.js";

/** Milliseconds in which the user has to finish a login. */
export const WEB_LOGIN_LIFE_MS = 10 * 60_000;
/** Far more than any login, in characters. */
const MAX_SAVED = 64 * 1024;
const MAX_STATE = 200;

/** Sealed logins that this process has finished, for stores without short-lived records. */
const finishedHere = memoryRecords();

export interface WebLoginContext {
  store: GrantStore;
  clock: Pick<Clock, "epoch">;
  /** The tenant of the store: two of them may each have a user of the same name. */
  tenant: string | undefined;
  profile: string;
  account: string | undefined;
  /** The first one seals, each one opens. */
  secrets: readonly string[];
}

interface WaitingLogin {
  login: PreparedLogin;
  returnTo: string | undefined;
}

/** Stores a prepared login until its callback arrives. */
export async function storeWebLogin(
  { store, clock, tenant, profile, account, secrets }: WebLoginContext,
  { login, returnTo }: WaitingLogin,
): Promise<StartedLogin> {
  const { state, authorizationUrl: url } = login.pending;
  const browser = crypto.randomUUID();
  const now = clock.epoch();
  const expiresAt = now + WEB_LOGIN_LIFE_MS;
  // The scopes are chosen: a long list of those that the issuer supports would only fill a cookie.
  const issuer = { ...login.issuer, scopesSupported: undefined };
  const members = loginMembers({ ...login, issuer, profile });
  const text = JSON.stringify({ login: members, tenant, returnTo, browser, expiresAt });
  const cookie = setCookie(await cookieName(state), browser, WEB_LOGIN_LIFE_MS / 1000);
  const [secret] = secrets;
  if (secret !== undefined) return { url, state, saved: await sealText(text, secret), cookie };
  const id = await hashValues(state, browser, tenant, profile, account);
  if (!(await requireRecords(store).put(id, text, { now, expiresAt }))) throw loginNotStoredError();
  return { url, state, saved: undefined, cookie };
}

/**
 * Takes the login that a callback belongs to. Each can be taken once, within ten minutes, by the browser, the tenant, the
 * profile and the account that it began with; any other attempt changes nothing.
 */
export async function takeWebLogin(
  context: WebLoginContext,
  parameters: URLSearchParams,
  { saved, cookie }: { saved: string | undefined; cookie: string | undefined },
): Promise<WaitingLogin> {
  const { store, clock, tenant, profile, account, secrets } = context;
  const state = readState(parameters);
  const browser = readCookie(cookie ?? "", await cookieName(state));
  if (browser === undefined) throw browserMismatchError();
  const isSealed = saved !== undefined;
  const text = isSealed
    ? saved.length > MAX_SAVED
      ? undefined
      : await openText(saved, secrets)
    : await store.shortLived?.take(await hashValues(state, browser, tenant, profile, account));
  if (text === undefined)
    throw isSealed ? badSavedLoginError("it was not sealed with loginSecret, or was changed") : loginNotFoundError();
  const waiting = decodeWaiting(text);
  const { login, expiresAt } = waiting;
  const now = clock.epoch();
  if (expiresAt <= now) throw loginNotFoundError();
  // The login at the identity provider is that of the profile, whatever account its client is for.
  const isForUser = login.account === account || login.account === IDP_ACCOUNT;
  if (waiting.tenant !== tenant || login.profile !== profile || !isForUser)
    throw badSavedLoginError("it belongs to another user");
  if (!isSameText(login.pending.state, state)) throw stateMismatchError();
  if (!isSameText(waiting.browser, browser)) throw browserMismatchError();
  const records = store.shortLived ?? finishedHere;
  const isFirst = !isSealed || (await records.put(`used-${await hashValues(state, browser)}`, "", { now, expiresAt }));
  if (!isFirst) throw loginNotFoundError();
  return waiting;
}

/**
 * Finishes a prepared login with a callback that has arrived. If the issuer rejected optional scopes, the result is the
 * login to send the user with again.
 */
export async function finishWithCallback(
  context: LoginContext,
  login: PreparedLogin,
  callback: URLSearchParams,
  signal: AbortSignal,
): Promise<Grant | { again: PreparedLogin }> {
  return finishLogin(context, login, "web", async (reservation) => {
    const judged = await judgeCallback(context, login, callback).catch(rethrowWithResourceHint(login.resource));
    return "again" in judged ? judged : exchangeLogin(context, judged, { reservation, signal });
  });
}

/** The name of the cookie of one login: two logins in two tabs have two. */
export async function cookieName(state: string): Promise<string> {
  return `__Host-agentauth-${await cookieId(state)}`;
}

/** The name of the cookie with the sealed login: `__Host-` would send it to every page, and headers have a limit. */
export async function savedCookieName(state: string): Promise<string> {
  return `__Secure-agentauth-${await cookieId(state)}-saved`;
}

/**
 * The names of the two cookies of each sealed login in a `Cookie` header that is not among the `newest`: logins that users
 * abandon must not make the header of the callback too long for its server.
 */
export function abandonedCookies(header: string, newest: number): { browser: string; saved: string }[] {
  const names = cookieNames(header, /^__Host-agentauth-[\w-]{16}$/);
  return names
    .slice(0, Math.max(0, names.length - newest))
    .map((browser) => ({ browser, saved: `${browser.replace("__Host-", "__Secure-")}-saved` }));
}

async function cookieId(state: string): Promise<string> {
  return (await hashValues(state)).slice(0, 16);
}

export function readState(parameters: URLSearchParams): string {
  const [state, ...more] = parameters.getAll("state");
  if (state === undefined || state.length > MAX_STATE || more.length > 0) throw stateMismatchError();
  return state;
}

function requireRecords({ shortLived }: GrantStore) {
  if (shortLived !== undefined) return shortLived;
  throw new TypeError("startLogin requires the option loginSecret, or a store with shortLived records");
}

function decodeWaiting(text: string) {
  try {
    const value = parseStrictJson(text);
    const { login, tenant, returnTo, browser, expiresAt } = isJsonObject(value) ? value : {};
    if (typeof browser !== "string" || typeof expiresAt !== "number") throw new CodecError("it contains no login");
    const page = typeof returnTo === "string" ? returnTo : undefined;
    return { login: decodeMembers(login), tenant, returnTo: page, browser, expiresAt };
  } catch (cause) {
    throw badSavedLoginError(cause instanceof CodecError ? cause.message : "it is not valid JSON", cause);
  }
}

function loginNotStoredError(): AgentAuthError {
  const message = "the store did not store the login: a login with this id exists already";
  return new AgentAuthError("store_failed", message, { class: "store", hint: "check put of the store's shortLived" });
}

function browserMismatchError(): AgentAuthError {
  const message =
    "the callback came from another browser than the one that the login was started in: the cookie differs";
  const hint = "send the cookie of startLogin with the redirect, from the host of redirectUri";
  return new AgentAuthError("browser_mismatch", message, { class: "refused", hint });
}

function loginNotFoundError(): AgentAuthError {
  const message =
    "no login waits for this callback: it was finished already, expired after 10 minutes, or is another user's";
  return new AgentAuthError("login_not_found", message, { class: "auth", hint: "start the login again" });
}

function badSavedLoginError(reason: string, cause?: unknown): AgentAuthError {
  const message = `the saved login cannot be used: ${reason}`;
  return new AgentAuthError("bad_saved_login", message, { class: "refused", hint: "start the login again", cause });
}

/** Far more than any text that is sealed, in bytes: a short one can inflate to a thousand times its length. */
const MAX_TEXT = 64 * 1024;

/** Compresses a text and encrypts it (RFC 7516) with AES-256-GCM, under a key that is derived from a secret. */
export async function sealText(text: string, secret: string): Promise<string> {
  const { CompactEncrypt } = await import("jose/jwe/compact/encrypt");
  const jwe = new CompactEncrypt(new TextEncoder().encode(text));
  return jwe.setProtectedHeader({ alg: "dir", enc: "A256GCM", zip: "DEF" }).encrypt(await deriveKey(secret));
}

/** The text that {@link sealText} encrypted with one of the secrets; undefined for any other. */
export async function openText(sealed: string, secrets: readonly string[]): Promise<string | undefined> {
  const { compactDecrypt } = await import("jose/jwe/compact/decrypt");
  const algorithms = { keyManagementAlgorithms: ["dir"], contentEncryptionAlgorithms: ["A256GCM"] };
  for (const secret of secrets) {
    try {
      const options = { ...algorithms, maxDecompressedLength: MAX_TEXT };
      const { plaintext } = await compactDecrypt(sealed, await deriveKey(secret), options);
      return new TextDecoder().decode(plaintext);
    } catch {
      // Sealed with another secret, changed, or too long.
    }
  }
  return undefined;
}

/** Whether two texts are equal, in a time that depends on their lengths only. */
export function isSameText(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let at = 0; at < one.length; at++) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}

async function deriveKey(secret: string) {
  const encoder = new TextEncoder();
  const material = await crypto.subtle.importKey("raw", encoder.encode(secret), "HKDF", false, ["deriveKey"]);
  const info = encoder.encode("a login that waits for its callback");
  const derivation = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  return crypto.subtle.deriveKey(derivation, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}
