import { type Advice, AgentAuthError } from "../../errors.js";
import { parseUrl } from "../../http/address.js";
import { parseIfJson } from "../../http/buffered-response.js";
import { isJsonObject } from "../../http/strict-json.js";
import { quote } from "../../redact.js";
import type { Remedy } from "../../remedy.js";
import type { OAuthHttp } from "../http/http.js";
import { errorCodeOf, readWords, serverWords } from "../http/oauth-error.js";
import { bearerChallenge } from "../model/challenge.js";
import type { ServerMetadata } from "../model/metadata.js";

export interface RefusedRegistration {
  response: Response;
  /** The body of the response. */
  text: string;
  url: string;
  /** The redirect address that was sent. */
  redirectUri: string;
  server: NonRegistering;
}

/** The issuer that registers no client. */
type NonRegistering = Pick<ServerMetadata, "issuer" | "takesClientIdDocuments">;

const CODE = /^[\w.-]{1,64}$/;

/**
 * The error for a registration that an issuer refused: with the issuer's own words, whatever the form of its answer,
 * and with the option that helps.
 *
 * @param error the error by RFC 7591, whose class and status are used
 */
export function registrationRefused(error: AgentAuthError, refused: RefusedRegistration): AgentAuthError {
  const { response, text, url, redirectUri } = refused;
  const body = response.headers.get("content-type")?.includes("json") ? parseIfJson(text) : undefined;
  const code = isJsonObject(body) ? body["error"] : undefined;
  const named = typeof code === "string" && CODE.test(code) ? code : bearerChallenge(response.headers)?.error;
  const words = readWords(response, text, named);
  const shown = serverWords(response, text, named);
  const asked = named === "invalid_redirect_uri" ? ` of ${redirectUri}` : "";
  const what = named === undefined ? `HTTP ${error.status}` : quote(named, 60);
  return new AgentAuthError(
    named === undefined ? "http_error" : errorCodeOf(named),
    `${url} refused the registration${asked} with ${what}${shown === undefined ? "" : `: ${shown}`}`,
    { class: error.class, status: error.status, url, ...adviceFor(named, words ?? "", refused) },
  );
}

/** What helps, by the words of the issuer. They choose between fixed advice, and no part of them is advice. */
function adviceFor(
  code: string | undefined,
  words: string,
  { response, redirectUri, server }: RefusedRegistration,
): Advice {
  const host = findOtherHost(code, words, redirectUri);
  if (host !== undefined) {
    const hint = `set redirectHost of the login to ${quote(host)}`;
    return { hint, remedy: { action: "configure", option: "redirectHost", value: host } };
  }
  if (/client[_ -]?name|allow-?list|white-?list|approved clients?/i.test(words)) {
    const hint = "set clientName to a name that this issuer allows, if it is yours to use";
    return { hint, remedy: { action: "configure", option: "clientName" } };
  }
  const isBare = (response.status === 401 || response.status === 403) && words.length < 40;
  return adviseWithoutRegistration(server, isBare);
}

/** What helps where an issuer registers no clients, or refuses to register this one. */
export function adviseWithoutRegistration(
  { issuer: clientIssuer, takesClientIdDocuments }: NonRegistering,
  mayWantName = false,
): Advice {
  const hint = "give the client it knows as client";
  const also = takesClientIdDocuments ? "clientMetadataUrl" : mayWantName ? "clientName" : undefined;
  const remedy: Remedy = { action: "configure", option: "client", clientIssuer, ...(also && { also }) };
  return { hint: also === undefined ? hint : `${hint}, or ${also}`, remedy };
}

/**
 * The loopback host to try in place of the one that was refused. `localhost` also where the issuer does not say which
 * one it wants; the other way round only where the words name it, so that two refusals do not lead in a circle.
 */
function findOtherHost(code: string | undefined, words: string, redirectUri: string): string | undefined {
  const { hostname } = new URL(redirectUri);
  // The issuer may quote the address.
  const own = words.replaceAll(redirectUri, " ");
  if (hostname === "127.0.0.1") {
    if (refusesHost(own, "localhost")) return undefined;
    const isAboutRedirect = code === "invalid_redirect_uri" || /redirect|callback|loopback|127\.0\.0\.1/i.test(own);
    return /localhost/i.test(own) || (isAboutRedirect && !/https|trusted/i.test(own)) ? "localhost" : undefined;
  }
  if (hostname !== "localhost" || refusesHost(own, "127.0.0.1")) return undefined;
  return refusesHost(own, "localhost") || /127\.0\.0\.1|loopback ip/i.test(own) ? "127.0.0.1" : undefined;
}

function refusesHost(words: string, host: string): boolean {
  const name = host.replaceAll(".", "\\.");
  const after = `(?<!(?:other than|except|only|but) )\\b${name}\\b(?:[\\w:/*"' ]{0,30}) (?:is|are|be|was) (?:not|forbidden|disallowed|refused)`;
  return new RegExp(`${after}|\\b(?:not|no) (?:allow |permit |accept |use )?${name}\\b`, "i").test(words);
}

/** What a client asks an authorization endpoint for. */
interface AuthorizationRequest {
  authorizationUrl: string;
  redirectUri: string;
}

/**
 * Whether the issuer has forgotten a client, by a request to the authorization endpoint without following redirects:
 * the issuer reports that in the browser only, without a callback. Only a rejection counts, since a page may be readable
 * in a browser only. Servers that look the client up without a check fail with 500, and others redirect to a page of
 * their own with the error in its address.
 */
export async function isForgotten(
  http: OAuthHttp,
  { authorizationUrl, redirectUri }: AuthorizationRequest,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const reply = await http.probe(authorizationUrl, signal).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    return undefined;
  });
  if (reply === undefined) return false;
  const { status, headers } = reply.response;
  const page = parseUrl(headers.get("location") ?? "", new URL(authorizationUrl));
  // An error at the callback is the answer to the login.
  const error = page?.href.startsWith(redirectUri) ? undefined : page?.searchParams.get("error");
  return REJECTIONS.includes(status) || OF_CLIENT.includes(error ?? "");
}

const REJECTIONS = [400, 401, 403, 404, 422, 500];
/** The errors of a client, by RFC 6749 sections 4.1.2.1 and 5.2, and RFC 7591 section 3.2.2. */
const OF_CLIENT = ["invalid_client", "unauthorized_client", "invalid_redirect_uri"];
