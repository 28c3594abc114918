import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import type { Answer } from "./answer.js";
import { readBearer } from "./bearer.js";
import { answerTo, askForToken } from "./challenge.js";
import { TokenRefusal } from "./events.js";
import { invalidToken, type Judge } from "./judge.js";
import type { Settings } from "./settings.js";
import { readScopes } from "./settings.js";
import type { VerifiedToken } from "./verified-token.js";

/** Scopes, or how a request whose token is good tells which ones it needs. */
export type Scopes<R> = readonly string[] | ((request: R) => readonly string[] | Promise<readonly string[]>);

/** What a request brought: a token that may pass, or what is answered instead. */
export type Passed = { verified: VerifiedToken; answer?: undefined } | { verified?: undefined; answer: Answer };

/** Looks at the credentials of requests. */
export interface Gate {
  /**
   * Judges a token and its scopes.
   *
   * @throws `AgentAuthError` `invalid_token`, `insufficient_scope`, or one of class `unavailable`
   */
  verify(token: string, scopes: readonly string[], signal: AbortSignal | undefined): Promise<VerifiedToken>;
  /** Judges the `Authorization` headers of a request. */
  pass<R>(values: readonly string[], request: R, scopes: Scopes<R> | undefined): Promise<Passed>;
}

/** Makes the gate of a resource server. */
export function createGate(judge: Judge, settings: Settings, metadataUrl: string): Gate {
  const { requiredScopes, log } = settings;
  const needed = (scopes: readonly string[]) => [...new Set([...requiredScopes, ...readScopes("scopes", scopes)])];
  const demand = (verified: VerifiedToken, scopes: readonly string[]): VerifiedToken => {
    const missing = scopes.filter((scope) => !verified.scopes.includes(scope));
    if (missing.length === 0) return verified;
    log({ type: "refused", reason: "scope", detail: `the token lacks ${quote(missing.join(" "))}` });
    const message = `the access token lacks scopes: ${quote(scopes.join(" "))} are needed`;
    throw new AgentAuthError("insufficient_scope", message, { class: "auth", status: 403 });
  };
  /** The token of the headers; undefined where there is none. */
  const read = (values: readonly string[]): string | undefined => {
    try {
      return readBearer(values);
    } catch (error) {
      if (!(error instanceof TokenRefusal)) throw error;
      log({ type: "refused", reason: error.reason, detail: error.message });
      if (error.reason === "missing") return undefined;
      throw invalidToken();
    }
  };
  return {
    verify: async (token, scopes, signal) => demand(await judge(token, signal), needed(scopes)),
    async pass(values, request, scopes) {
      let context = { metadataUrl, scopes: needed(typeof scopes === "function" ? [] : (scopes ?? [])) };
      try {
        const token = read(values);
        if (token === undefined) return { answer: askForToken(context) };
        const verified = await judge(token, undefined);
        if (typeof scopes === "function") context = { metadataUrl, scopes: needed(await scopes(request)) };
        return { verified: demand(verified, context.scopes) };
      } catch (error) {
        const answer = answerTo(error, context);
        if (!answer) throw error;
        return { answer };
      }
    },
  };
}
