import { AgentAuthError, isAgentAuthError, usageError } from "../../../errors.js";
import { followSignal } from "../../../http/deadline.js";
import { loginText, waitingText } from "../../../login/messages.js";
import { checkPaste } from "../../../login/paste.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { type PreparedLogin, withoutAddedScope } from "../../../oauth/login/authorization.js";
import type { CallbackWay, StoredLogin } from "../../../oauth/login/login-codec.js";
import type { AuthorizePrompt, LoginSession } from "../../../oauth/login/login-method.js";
import { DEFAULT_LOGIN_TIMEOUT_MS, timeoutError } from "../../../oauth/login/login-method.js";
import type { AccessToken } from "../../../oauth/model/grant.js";
import { parseMcpUrl } from "../../../oauth/model/resource.js";
import { quote, shellWord } from "../../../redact.js";
import { loginMethod } from "../../clients/login-method.js";
import {
  finishCommand,
  isListening,
  readLogin,
  removeLogin,
  storeCallback,
  storeInterval,
  takeCallback,
} from "../../clients/started-logins.js";
import type { TokenFlags } from "../../flags/agent.js";
import type { CommandContext } from "../../runtime/context.js";

/** How often the file of a callback is looked for. */
const LOOK_MS = 200;

interface SecondStep {
  id: string;
  url: string;
  options: TokenFlags;
  context: CommandContext;
  /** The callback that the process of the first step received, once it was taken. */
  taken?: URLSearchParams | undefined;
  /** Whether the issuer rejected optional scopes, and the user has to open another URL in another first step. */
  needsAgain?: boolean;
}

/** A login whose scopes the issuer rejected, and the scopes to begin it again with. */
export interface RejectedLogin extends Pick<StoredLogin, "account" | "flow"> {
  readonly scope: string;
}

/** `login --wait <id>`: receives the callback of the first step, or polls with its device code. */
export async function finishLogin(
  agent: AgentClient,
  step: SecondStep,
): Promise<{ token: AccessToken } | { rejected: RejectedLogin }> {
  const { id, url, options, context } = step;
  const { signal } = context;
  const login = readLogin(id, url, context);
  checkSameLogin(login, step);
  if (login.flow === "device" && options.callbackUrl !== undefined)
    throw usageError(
      `the login ${quote(id)} is one with a device code, which has no callback`,
      "leave out --callback-url",
    );
  if (login.flow === "device") {
    const token = await agent
      .finishDeviceLogin({ ...login, onSlowDown: createIntervalSaver(step) }, { signal })
      .catch((error: unknown) => {
        throw removeFailed(error, step);
      });
    removeLogin(id, context);
    return { token };
  }
  try {
    const token = await agent.finishLogin(login, createSession(login, step), { signal });
    removeLogin(id, context);
    return { token };
  } catch (error) {
    if (!step.needsAgain) throw afterTaken(error, step);
    removeLogin(id, context);
    const { account, flow } = login;
    return { rejected: { account, flow, scope: withoutAddedScope(login).scope.join(" ") } };
  }
}

/** Stores the interval that the issuer demands, for a process that goes on after this one was stopped. */
function createIntervalSaver({ id, context }: SecondStep): (seconds: number) => void {
  return (seconds) => {
    try {
      storeInterval(id, seconds, context);
    } catch {
      // The login does not need it: the issuer would ask the next process to slow down again.
    }
  };
}

/** A code that the issuer has denied or let expire is of no more use. */
function removeFailed(error: unknown, { id, context }: SecondStep): unknown {
  const { code } = error as Partial<AgentAuthError>;
  if (code === "access_denied" || code === "expired_token") removeLogin(id, context);
  return error;
}

/**
 * A callback that was taken comes once: without it the next try would wait in vain. It is stored again where its code was
 * not sent; else the login is removed, since a code serves one request and an error stays one.
 */
function afterTaken(error: unknown, { id, context, taken }: SecondStep): unknown {
  if (taken === undefined) return error;
  const isUnsent = isAgentAuthError(error) && error.class === "unavailable" && error.status === undefined;
  if (isUnsent && taken.has("code")) storeCallback(id, taken, context);
  else removeLogin(id, context);
  return error;
}

function createSession(login: PreparedLogin & CallbackWay, step: SecondStep): LoginSession {
  const { options, context } = step;
  const { callbackUrl } = options;
  const { redirectUri } = login.pending;
  if (callbackUrl !== undefined && callbackUrl !== "-")
    return forOneRequest(login, step, givenCallback(redirectUri, callbackUrl));
  if (callbackUrl === "-" || login.flow === "paste" || options.flow === "paste") {
    // Input that is piped is no prompt, and so is read with --no-input too.
    const { stdin } = context.io;
    const session = openedLater(redirectUri, () => openMethod(login, step, { flow: "paste" }, stdin.stream));
    return stdin.isTTY ? session : forOneRequest(login, step, session);
  }
  return heldCallback(login, step);
}

/** A session that gets one callback: where the issuer rejected optional scopes, the login begins again. */
function forOneRequest({ pending }: PreparedLogin, step: SecondStep, session: LoginSession): LoginSession {
  return {
    ...session,
    async authorize(prompt) {
      if (prompt.state !== pending.state) throw rejectedScopes(step);
      return session.authorize(prompt);
    },
  };
}

function rejectedScopes(step: SecondStep): AgentAuthError {
  step.needsAgain = true;
  return new AgentAuthError("invalid_scope", "the issuer rejected the requested scopes", { class: "auth" });
}

/** A callback from the command line: single use, and worthless without the verifier that is stored with the login. */
function givenCallback(redirectUri: string, callbackUrl: string): LoginSession {
  return {
    redirectUri,
    async authorize({ state, url: loginUrl, allowBareCode }) {
      const result = checkPaste(callbackUrl, { redirectUri, state, loginUrl, allowBareCode });
      if (result !== undefined && "parameters" in result) return result.parameters;
      const reason = result?.reason ?? "it is empty";
      throw usageError(`--callback-url was not accepted: ${reason}`);
    },
    async close() {},
  };
}

function openMethod(
  { server, issuer, pending, listensAt }: PreparedLogin & CallbackWay,
  { options, context }: SecondStep,
  flags: Pick<TokenFlags, "flow">,
  input?: CommandContext["io"]["stdin"]["stream"],
): Promise<LoginSession> {
  const { redirectUri } = pending;
  const { hostname, port, pathname } = new URL(listensAt ?? redirectUri);
  const redirect = {
    redirectUri,
    redirectHost: hostname === "127.0.0.1" ? hostname : "localhost",
    redirectPort: Number(port || 80),
    redirectPath: pathname === new URL(redirectUri).pathname ? undefined : pathname,
  } as const;
  const method = loginMethod({ ...options, ...flags, ...redirect, browser: "none" }, context, input);
  const { signal } = context;
  return method.open({ resource: server, issuer: issuer.issuer, signal });
}

function openedLater(redirectUri: string, open: () => Promise<LoginSession>): LoginSession {
  let session: LoginSession | undefined;
  return {
    redirectUri,
    async authorize(prompt) {
      session ??= await open();
      return session.authorize(prompt);
    },
    async close(outcome) {
      await session?.close(outcome);
    },
  };
}

/** The callback that the process of the first step received; where there is none, this process listens itself. */
function heldCallback(login: PreparedLogin & CallbackWay, step: SecondStep): LoginSession {
  const { redirectUri, state } = login.pending;
  const own = openedLater(redirectUri, () => openMethod(login, step, {}));
  return {
    ...own,
    async authorize(prompt) {
      // A second request has another state. Only a listener of this process can send the browser on to it.
      if (prompt.state !== state) {
        if (step.taken !== undefined) throw rejectedScopes(step);
        return own.authorize(prompt);
      }
      step.taken = await waitForCallback(login, prompt, step);
      return step.taken ?? own.authorize(prompt);
    },
  };
}

async function waitForCallback(
  { server, pending, listensAt = pending.redirectUri }: PreparedLogin & CallbackWay,
  prompt: AuthorizePrompt,
  { id, options, context }: SecondStep,
): Promise<URLSearchParams | undefined> {
  const { io, clock } = context;
  const seconds = options.loginTimeout ?? DEFAULT_LOGIN_TIMEOUT_MS / 1000;
  const deadline = followSignal(prompt.signal, seconds * 1000, () => timeoutError(server, seconds));
  let isAnnounced = false;
  try {
    for (;;) {
      const isHeld = await isListening(id, listensAt, context);
      // Looked for after that: the process stores the callback before it ends.
      const taken = takeCallback(id, context);
      if (taken !== undefined || !isHeld) return taken;
      if (!isAnnounced) io.with({ quiet: false }).say(`${loginText(server, prompt.url)}\n${waitingText(seconds)}`);
      isAnnounced = true;
      await clock.sleep(LOOK_MS, deadline.signal);
    }
  } finally {
    deadline.release();
  }
}

/** The flags of the second command must not contradict the first. */
function checkSameLogin(login: StoredLogin, { id, url, options, context }: SecondStep): void {
  if (login.server !== parseMcpUrl(url).resource)
    throw usageError(`the login ${quote(id)} is for ${login.server}, not for ${url}`);
  if ((login.handOver === undefined) !== (options.handOver === undefined)) {
    const what = login.handOver === undefined ? "is to be stored" : "is to be handed over";
    throw usageError(`the login ${quote(id)} ${what}`, finishCommand(id, login));
  }
  const { profile } = context.settings();
  if (login.profile !== profile.value)
    throw usageError(
      `the login ${quote(id)} belongs to the profile ${login.profile}`,
      `add --profile ${shellWord(login.profile)}`,
    );
  const { accountHint } = options;
  if (accountHint !== undefined && accountHint !== login.account) {
    const whose = login.account === undefined ? "was started without an account" : `is for ${quote(login.account)}`;
    const message = `the login ${quote(id)} ${whose}, not for --account-hint ${quote(accountHint)}`;
    throw new AgentAuthError("usage", message, {
      class: "usage",
      hint: "leave it out, or start another login",
      remedy: { action: "login", server: url, account: accountHint },
    });
  }
}
