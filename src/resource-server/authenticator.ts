import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { answerTo, askForToken, type ChallengeContext } from "./challenge.js";
import { type Credentials, readCredentials } from "./credentials.js";
import { BEARER, type Dpop, type Presentation, SCHEMES_TAKEN } from "./dpop.js";
import type { Answer } from "./error-response.js";
import { TokenRefusal } from "./events.js";
import type { Settings } from "./resolved-options.js";
import { readScopes } from "./resolved-options.js";
import type { VerifiedToken } from "./verified-token.js";
import { refusal, type TokenVerifier } from "./verifier.js";

/** Scopes, or how a request whose token is good tells which ones it needs. */
export type Scopes<R> = readonly string[] | ((request: R) => readonly string[] | Promise<readonly string[]>);

/** What a request brings, whichever way it came. */
export interface PresentedRequest extends Pick<Presentation, "method" | "url"> {
  /** Every `Authorization` header. */
  authorization: readonly string[];
  /** Every `DPoP` header. */
  proof: readonly string[];
}

/** What came of it: a token that may pass, and headers for the answer to the request; or what is answered instead. */
export type Authenticated =
  | { verified: VerifiedToken; headers: Readonly<Record<string, string>>; answer?: undefined }
  | { verified?: undefined; answer: Answer };

/** What `verify` can be told beside the token. */
export interface VerifyOptions {
  /** The scopes that the token must have beside `requiredScopes`. */
  scopes?: readonly string[] | undefined;
  /** How the token came. Without it, it is a bearer token: one that is bound to a key is refused. */
  presented?: Presentation | undefined;
  /** Ends the wait. */
  signal?: AbortSignal | undefined;
}

/** Looks at the credentials of requests. */
export interface Authenticator {
  /**
   * Judges a token and its scopes.
   *
   * @throws `AgentAuthError` `not_authenticated`, `invalid_token`, `invalid_dpop_proof`, `use_dpop_nonce`,
   * `insufficient_scope`, or one of class `unavailable`
   */
  verify(token: string, options: VerifyOptions): Promise<VerifiedToken>;
  /** Judges the headers of a request. */
  authenticate<R>(brought: PresentedRequest, request: R, scopes: Scopes<R> | undefined): Promise<Authenticated>;
}

const NO_TOKEN = "there is no access token to judge";

/** Types do not keep a program from handing on what a request does not have. */
const isToken = (token: unknown): boolean => typeof token === "string" && token.trim() !== "";

/** Makes the gate of a resource server. */
export function createAuthenticator(
  judge: TokenVerifier,
  dpop: Dpop,
  settings: Settings,
  metadataUrl: string,
): Authenticator {
  const { requiredScopes, log } = settings;
  const taken = SCHEMES_TAKEN[settings.dpop];
  const needed = (scopes: readonly string[]) => [...new Set([...requiredScopes, ...readScopes("scopes", scopes)])];
  const demand = (verified: VerifiedToken, scopes: readonly string[]): VerifiedToken => {
    const missing = scopes.filter((scope) => !verified.scopes.includes(scope));
    if (missing.length === 0) return verified;
    log({ type: "refused", reason: "scope", detail: `the token lacks ${quote(missing.join(" "))}` });
    const message = `the access token lacks scopes: ${quote(scopes.join(" "))} are needed`;
    throw new AgentAuthError("insufficient_scope", message, { class: "auth", status: 403 });
  };
  /** The token of the headers; undefined where there is none. */
  const read = (values: readonly string[]): Credentials | undefined => {
    try {
      return readCredentials(values, taken);
    } catch (error) {
      if (!(error instanceof TokenRefusal)) throw error;
      log({ type: "refused", reason: error.reason, detail: error.message });
      if (error.reason === "missing") return undefined;
      throw refusal(error.reason);
    }
  };
  return {
    async verify(token, { scopes = [], presented = BEARER, signal }) {
      if (!isToken(token)) {
        log({ type: "refused", reason: "missing", detail: "no token" });
        throw new AgentAuthError("not_authenticated", NO_TOKEN, { class: "auth", status: 401 });
      }
      const { verified } = await judge(token, presented, signal);
      return demand(verified, needed(scopes));
    },
    async authenticate({ authorization, ...presented }, request, scopes) {
      const [scheme = "Bearer"] = taken;
      const nonce = await dpop.nonce();
      const context: ChallengeContext = { metadataUrl, taken, scheme, nonce, scopes: [] };
      try {
        context.scopes = needed(typeof scopes === "function" ? [] : (scopes ?? []));
        const credentials = read(authorization);
        if (!credentials) return { answer: askForToken(context) };
        context.scheme = credentials.scheme;
        const { verified, isNonceOld } = await judge(credentials.token, { ...presented, ...credentials }, undefined);
        if (typeof scopes === "function") context.scopes = needed(await scopes(request));
        const headers = isNonceOld && nonce !== undefined ? { "dpop-nonce": nonce } : {};
        return { verified: demand(verified, context.scopes), headers };
      } catch (error) {
        const answer = answerTo(error, context);
        if (!answer) throw error;
        return { answer };
      }
    },
  };
}
