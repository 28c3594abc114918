import { onTestFinished } from "vitest";
import { detectEnvironment } from "../../src/login/platform.js";
import { type TerminalLoginOptions, terminalLogin } from "../../src/login/terminal.js";
import type { AuthorizePrompt, LoginSession } from "../../src/oauth/login/login-method.js";
import { STATE } from "./support.js";

export const RESOURCE = "https://mcp.example/mcp";
export const LOGIN_URL = `https://issuer.example/authorize?state=${STATE}`;
const DESKTOP = detectEnvironment({ env: { DISPLAY: ":0" }, exists: () => false, platform: "linux" });

export interface Setup {
  session: LoginSession;
  said: string[];
  /** Everything said so far. */
  text: () => string;
  controller: AbortController;
  authorize: (changes?: Partial<AuthorizePrompt>) => Promise<URLSearchParams>;
}

export async function login(options: Partial<TerminalLoginOptions> = {}, preferred?: string): Promise<Setup> {
  const said: string[] = [];
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const method = terminalLogin({
    say: (text) => said.push(text),
    env: {},
    environment: DESKTOP,
    browser: "none",
    ...options,
  });
  const session = await method.open({
    resource: RESOURCE,
    issuer: "https://issuer.example",
    preferredRedirectUri: preferred,
    signal: controller.signal,
  });
  return {
    session,
    said,
    text: () => said.join("\n"),
    controller,
    authorize(changes) {
      const parameters = session.authorize({
        url: LOGIN_URL,
        state: STATE,
        allowBareCode: false,
        signal: new AbortController().signal,
        ...changes,
      });
      // Those that a test does not wait for end with it.
      parameters.catch(() => undefined);
      return parameters;
    },
  };
}

export const portOf = (session: LoginSession) => Number(new URL(session.redirectUri).port);
