import { isAgentAuthError, withHint } from "../../errors.js";
import type { LoginRemedy, UnseenByLogin } from "../../remedy.js";
import type { BearerChallenge } from "../model/challenge.js";
import { wellKnownAddresses } from "./resource-metadata.js";

/** What a later login cannot find out: a server that accepts some requests without a token sends it no challenge. */
export function unseenByLogin(challenge: BearerChallenge | undefined, server: string): UnseenByLogin {
  const [resourceMetadata] = challenge?.resourceMetadata ?? [];
  if (resourceMetadata === undefined || wellKnownAddresses(server).includes(resourceMetadata)) return {};
  return { resourceMetadata, scope: challenge?.scope };
}

/** An error whose remedy is an option, with what a login with the option needs as well (see {@link unseenByLogin}). */
export function withUnseen(error: unknown, challenge: BearerChallenge | undefined, server: string): unknown {
  const remedy = isAgentAuthError(error) ? error.remedy : undefined;
  if (!isAgentAuthError(error) || (remedy?.action !== "allow" && remedy?.action !== "configure")) return error;
  const { resourceMetadata, scope } = unseenByLogin(challenge, server);
  if (resourceMetadata === undefined) return error;
  return withHint(error, error.hint, { ...remedy, login: { resourceMetadata, ...(scope !== undefined && { scope }) } });
}

/** The challenge that a remedy was made of, as far as a login needs it (see {@link unseenByLogin}). */
export function challengeOfRemedy({ resourceMetadata, scope }: LoginRemedy): BearerChallenge | undefined {
  if (resourceMetadata === undefined) return undefined;
  return { resourceMetadata: [resourceMetadata], scope, error: undefined, schemes: [] };
}
