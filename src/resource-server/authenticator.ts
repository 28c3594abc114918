import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { type Answer, answerTo, askForToken, type ChallengeContext } from "./challenge.js";
import type { VerifiedToken } from "./claims.js";
import { type Credentials, readCredentials } from "./credentials.js";
import type { Dpop, Presentation } from "./dpop.js";
import type { Metadata } from "./metadata.js";
import { type ResourceServerSettings, readScopes } from "./options.js";
import { TokenRefusal, tokenRefusalError } from "./refusal.js";
import type { TokenVerifier } from "./verifier.js";

/** Scopes, or a function that returns those that a request with a valid token needs. */
export type Scopes<R> = readonly string[] | ((request: R) => readonly string[] | Promise<readonly string[]>);

/** The credentials of a request, from any kind of server. */
export interface PresentedRequest extends Pick<Presentation, "method" | "url"> {
  /** Every `Authorization` header. */
  authorization: readonly string[];
  /** Every `DPoP` header. */
  proof: readonly string[];
}

/** The result: a verified token, and headers for the response to the request; or the response to send instead. */
export type Authenticated =
  | { verified: VerifiedToken; headers: Readonly<Record<string, string>>; answer?: undefined }
  | { verified?: undefined; headers?: undefined; answer: Answer };

/** The options of `verify`. */
export interface VerifyOptions {
  /** The scopes that the token must have beside `requiredScopes`. */
  scopes?: readonly string[] | undefined;
  /** How the token was presented. Without it, it is a bearer token: one that is bound to a key is refused. */
  presented?: Presentation | undefined;
  /** Aborts the verification. */
  signal?: AbortSignal | undefined;
}

/** Authenticates requests. */
export interface Authenticator {
  /** The metadata of the resource server, which challenges name. */
  readonly metadata: Metadata;
  /**
   * Verifies a token and its scopes.
   *
   * @throws `AgentAuthError` `not_authenticated`, `invalid_token`, `invalid_dpop_proof`, `use_dpop_nonce`,
   * `insufficient_scope`, or one of class `unavailable`
   */
  verify(token: string, options: VerifyOptions): Promise<VerifiedToken>;
  authenticate<R>(presented: PresentedRequest, request: R, scopes: Scopes<R> | undefined): Promise<Authenticated>;
}

/** The presentation of a token without further information. */
const BEARER: Presentation = { scheme: "Bearer", method: "GET", url: "/" };
const NO_TOKEN = "there is no access token to verify";

/** Checked at run time: a program may pass on a header that a request does not have. */
const isToken = (token: unknown): boolean => typeof token === "string" && token.trim() !== "";

export function createAuthenticator(
  verifyToken: TokenVerifier,
  dpop: Dpop,
  { requiredScopes, log }: ResourceServerSettings,
  metadata: Metadata,
): Authenticator {
  const { acceptedSchemes } = dpop;
  const withRequired = (scopes: readonly string[]) => [
    ...new Set([...requiredScopes, ...readScopes("scopes", scopes)]),
  ];
  const requireScopes = (verified: VerifiedToken, scopes: readonly string[]): VerifiedToken => {
    const missing = scopes.filter((scope) => !verified.scopes.includes(scope));
    if (missing.length === 0) return verified;
    log({ type: "refused", reason: "scope", detail: `the token lacks ${quote(missing.join(" "))}` });
    const message = `the access token lacks scopes: ${quote(scopes.join(" "))} are needed`;
    throw new AgentAuthError("insufficient_scope", message, { class: "auth", status: 403 });
  };
  /** The token of the headers; undefined where there is none. */
  const read = (values: readonly string[]): Credentials | undefined => {
    try {
      return readCredentials(values, acceptedSchemes);
    } catch (error) {
      if (!(error instanceof TokenRefusal)) throw error;
      log({ type: "refused", reason: error.reason, detail: error.message });
      if (error.reason === "missing") return undefined;
      throw tokenRefusalError(error.reason);
    }
  };
  return {
    metadata,
    async verify(token, { scopes = [], presented = BEARER, signal }) {
      if (!isToken(token)) {
        log({ type: "refused", reason: "missing", detail: "no token" });
        throw new AgentAuthError("not_authenticated", NO_TOKEN, { class: "auth", status: 401 });
      }
      const { verified } = await verifyToken(token, presented, signal);
      return requireScopes(verified, withRequired(scopes));
    },
    async authenticate({ authorization, ...presented }, request, scopes) {
      const [scheme = "Bearer"] = acceptedSchemes;
      const nonce = await dpop.nonce();
      const fixed = withRequired(typeof scopes === "function" ? [] : (scopes ?? []));
      const context: ChallengeContext = { metadataUrl: metadata.url, acceptedSchemes, scheme, nonce, scopes: fixed };
      try {
        const credentials = read(authorization);
        if (!credentials) return { answer: askForToken(context) };
        context.scheme = credentials.scheme;
        const { verified, isNonceOld } = await verifyToken(
          credentials.token,
          { ...presented, ...credentials },
          undefined,
        );
        if (typeof scopes === "function") context.scopes = withRequired(await scopes(request));
        const headers = isNonceOld && nonce !== undefined ? { "dpop-nonce": nonce } : {};
        return { verified: requireScopes(verified, context.scopes), headers };
      } catch (error) {
        const answer = answerTo(error, context);
        if (!answer) throw error;
        return { answer };
      }
    },
  };
}
