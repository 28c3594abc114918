import { randomBytes } from "node:crypto";
import { deviceText } from "../../../login/browser.js";
import { reserveRedirect } from "../../../login/listen.js";
import { codeTakerText, consentText, listeningText } from "../../../login/messages.js";
import { listenAddress } from "../../../login/redirect-address.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { checkHandOver } from "../../../oauth/hand-over.js";
import { forcesConsent } from "../../../oauth/login/authorization.js";
import type { StoredLogin } from "../../../oauth/login/login-codec.js";
import { IDP_ACCOUNT } from "../../../oauth/model/machine-grant.js";
import { loginMethodOptions } from "../../../profile/login-settings.js";
import type { CallbackListener } from "../../clients/started-logins.js";
import { finishCommand, LIFE_MS, startListener, storeLogin } from "../../clients/started-logins.js";
import type { TokenFlags } from "../../flags/agent.js";
import { flagText } from "../../flags/flag-name.js";
import { escapeJson } from "../../output/value.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import type { RejectedLogin } from "./finish-login.js";
import { handOverWords, openLoginClient } from "./hand-over.js";

/** The output of `login --no-wait -o json`. */
interface PrintedStart {
  /** The id for `login --wait`. */
  login_id: string;
  /** How the user logs in: in a browser that returns to this machine, by a pasted callback, or with a code. */
  flow: "browser" | "paste" | "device";
  /** Where the user logs in. */
  url: string;
  /** Until when the user can log in. */
  expires_at: string;
  /** The command that finishes the login. */
  finish: string;
  /** Whether a process waits for the callback already; else start `finish` before the user opens the URL (browser). */
  listening?: boolean;
  /** The code that the user enters (device). */
  user_code?: string;
  /** Where the user enters it (device). */
  verification_uri?: string;
  /** The same with the code in it, if the issuer returned one (device). */
  verification_uri_complete?: string;
}

/** `login --no-wait`: prints where the user logs in, and stores the state for the second step. */
export async function beginLogin(url: string, options: TokenFlags, context: CommandContext): Promise<undefined> {
  const { agent, store } = await openLoginClient(options, context);
  if (store !== undefined) await checkHandOver(agent, url, context.signal);
  const report = await (options.flow === "device" ? beginDevice : beginCallback)(agent, url, options, context);
  const { io } = context;
  if (options.json || options.output === "json") {
    await io.stdout.write(`${escapeJson(JSON.stringify(report))}\n`);
    return;
  }
  await io.stdout.write(`${report.url}\n`);
  const when =
    report.flow === "browser" && !report.listening ? " in another window before you open the URL to log in" : "";
  io.say(`run this${when}: ${report.finish}`);
}

/** Begins a login again whose issuer rejected optional scopes: the user has to open another URL. */
export async function beginAgain(
  url: string,
  { account, flow, scope }: RejectedLogin,
  options: TokenFlags,
  context: CommandContext,
): Promise<number> {
  const flags = {
    ...options,
    scope,
    ...(account !== undefined && account !== IDP_ACCOUNT && { accountHint: account }),
    ...(flow === "paste" && { flow }),
  };
  context.io.say("the login is not complete: the user has to open another URL, which requests fewer scopes");
  const { output: _, ...contextFlags } = flags;
  await beginLogin(url, flags, context.with({ flags: contextFlags }));
  return EXIT_CODES.auth;
}

async function beginDevice(
  agent: AgentClient,
  url: string,
  options: TokenFlags,
  context: CommandContext,
): Promise<PrintedStart> {
  const { scope, idp } = options;
  const wanted = { scope, signal: context.signal };
  const login = await (idp === undefined ? agent.beginDeviceLogin(url, wanted) : agent.beginIdpDeviceLogin(wanted));
  const { userCode, verificationUri, verificationUriComplete: complete, expiresAt } = login.device;
  const ttlMs = expiresAt - context.now();
  // It also refuses a code or an address that must not be shown.
  context.io.say(deviceText({ ...login.device, expiresInSeconds: Math.round(ttlMs / 1000) }));
  const id = newLoginId();
  const profile = context.settings().profile.value;
  const handOver = handOverWords(options, context);
  const stored: StoredLogin = { ...login, flow: "device", profile, ttlMs, handOver };
  await storeLogin(id, stored, context);
  return {
    ...describeStart(id, stored, context),
    url: complete ?? verificationUri,
    user_code: userCode,
    verification_uri: verificationUri,
    ...(complete !== undefined && { verification_uri_complete: complete }),
  };
}

async function beginCallback(
  agent: AgentClient,
  url: string,
  options: TokenFlags,
  context: CommandContext,
): Promise<PrintedStart> {
  const { scope, idp, loginTimeout } = options;
  const flow = options.flow === "paste" ? options.flow : undefined;
  let listener: CallbackListener | undefined;
  const redirectOptions = loginMethodOptions(options);
  const listensAt =
    flow === undefined && redirectOptions.redirectUri !== undefined ? listenAddress(redirectOptions) : undefined;
  const bind = async (preferred: string | undefined) => {
    const redirect = { ...redirectOptions, preferred };
    if (flow === undefined) listener = await startListener(redirect, context);
    return listener?.redirectUri ?? reserveRedirect(redirect);
  };
  const id = newLoginId();
  const ttlMs = loginTimeout === undefined ? LIFE_MS : loginTimeout * 1000;
  try {
    const wanted = { scope, signal: context.signal };
    const login = await (idp === undefined ? agent.beginLogin(url, bind, wanted) : agent.beginIdpLogin(bind, wanted));
    const profile = context.settings().profile.value;
    const handOver = handOverWords(options, context);
    const stored: StoredLogin = { ...login, flow, listensAt, profile, ttlMs, handOver };
    await storeLogin(id, stored, context);
    const { authorizationUrl, state } = login.pending;
    const { tokenEndpoint, promisesIss } = login.issuer;
    const warning = codeTakerText(authorizationUrl, { tokenEndpoint, promisesIss }, flagText);
    if (warning !== undefined) context.io.say(warning);
    if (forcesConsent(login)) context.io.say(consentText(flagText));
    if (listensAt !== undefined) context.io.say(listeningText(login.pending.redirectUri, listensAt));
    const listening = (await listener?.waitInBackground({ id, state, ttlMs })) ?? false;
    const started = { ...describeStart(id, stored, context), url: authorizationUrl };
    return flow === undefined ? { ...started, listening } : started;
  } catch (error) {
    listener?.stop();
    throw error;
  }
}

/** Never begins with "-": the parser reads `--wait -qab` as the flags `--wait`, `-q` and `-ab`. */
export function newLoginId(bytes = randomBytes(9)): string {
  return bytes.toString("base64url").replace(/^-/, "_");
}

function describeStart(id: string, login: StoredLogin, context: CommandContext): Omit<PrintedStart, "url"> {
  return {
    login_id: id,
    flow: login.flow ?? "browser",
    expires_at: new Date(context.now() + (login.ttlMs ?? LIFE_MS)).toISOString(),
    finish: finishCommand(id, login),
  };
}
