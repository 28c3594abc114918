import type {
  AuthorizePrompt,
  DevicePrompt,
  LoginMethod,
  LoginOpen,
  LoginOutcome,
  LoginSession,
} from "../../src/oauth/login/login-method.js";

/** A user who logs in at once: asks the authorization address without following it, and takes where it leads. */
export class TestLogin implements LoginMethod {
  /** Where it says that the callback arrives. */
  redirectUri = "http://127.0.0.1:49152/callback";
  /** The requests to `open`, in order. */
  readonly opened: LoginOpen[] = [];
  /** The authorization addresses, in order. */
  readonly urls: URL[] = [];
  /** Whether a bare code was allowed, in order. */
  readonly bareCodes: boolean[] = [];
  /** Where the code was to go, and whether the callback would name its issuer, in order. */
  readonly takers: Pick<AuthorizePrompt, "tokenEndpoint" | "promisesIss">[] = [];
  /** Whether a consent was forced, in order. */
  readonly consents: (boolean | undefined)[] = [];
  /** How the sessions ended, in order. */
  readonly outcomes: LoginOutcome[] = [];
  /** The codes of device logins, in order. */
  readonly prompts: DevicePrompt[] = [];
  /** Changes a callback before it is given back. */
  alter: (callback: URLSearchParams) => URLSearchParams | undefined = () => undefined;
  /** Awaited before the user's browser is sent to the issuer. */
  before: () => unknown = () => undefined;

  readonly log: string[];

  constructor(log: string[] = []) {
    this.log = log;
  }

  async open(request: LoginOpen): Promise<LoginSession> {
    this.opened.push(request);
    this.log.push("person open");
    return {
      redirectUri: this.redirectUri,
      authorize: async ({ url, allowBareCode, tokenEndpoint, promisesIss, forcesConsent, signal }) => {
        this.urls.push(new URL(url));
        this.bareCodes.push(allowBareCode);
        this.consents.push(forcesConsent);
        this.takers.push({ tokenEndpoint, promisesIss });
        this.log.push("person authorize");
        await this.before();
        const response = await fetch(url, { redirect: "manual", signal });
        const callback = new URL(response.headers.get("location") ?? this.redirectUri).searchParams;
        return this.alter(callback) ?? callback;
      },
      close: async (outcome) => {
        this.outcomes.push(outcome);
        this.log.push(`person close ${outcome.ok ? "ok" : outcome.error.code}`);
      },
    };
  }

  async showDeviceCode(prompt: DevicePrompt): Promise<void> {
    this.prompts.push(prompt);
  }

  /** The parameters of the n-th authorization request, from 0. */
  requested(nth = 0): URLSearchParams {
    const url = this.urls[nth];
    if (!url) throw new Error(`no authorization request ${nth}`);
    return url.searchParams;
  }
}
