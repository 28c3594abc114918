import { createHash, randomBytes } from "node:crypto";
import { parseJsonObject } from "../../src/http/strict-json.js";
import type { SandboxClock } from "../../src/sandbox/http/clock.js";
import { doubleAuthentication, jsonResponse, type SandboxResponse } from "../../src/sandbox/http/requests.js";
import { type ServerShape, SHAPE_CLIENT, type ShapeRefusal } from "./shape.js";

/** An authorization server of a shape. It logs the user in at once, without pages. */
export class ShapeAuthorization {
  readonly #shape: ServerShape;
  readonly #subject: string;
  readonly #tokens: ShapeTokens;
  readonly #clients = new Map<string, ShapeClientRecord>();
  /** The clients that the user has consented to. */
  readonly #consented = new Set<string>();

  /** @param subject the user who is logged in */
  constructor(shape: ServerShape, clock: SandboxClock, subject: string) {
    this.#shape = shape;
    this.#subject = subject;
    this.#tokens = new ShapeTokens(shape, clock);
    const secret = typeof shape.client === "string" ? shape.client : undefined;
    if (shape.client) this.#clients.set(SHAPE_CLIENT, { id: SHAPE_CLIENT, secret, redirects: undefined });
  }

  /** The grant of an access token; undefined if it is not valid at the MCP server. */
  find(token: string): ShapeToken | undefined {
    const found = this.#tokens.find(token);
    return found && !this.#refusal("mcp", new Map([["client_id", found.clientId]])) ? found : undefined;
  }

  /** A client that is registered, or that names its metadata document, which is not read. */
  #client(id: string): ShapeClientRecord | undefined {
    const takesDocuments = Object.values(this.#shape.documents).some(
      (document) => document["client_id_metadata_document_supported"] === true,
    );
    const ofDocument = takesDocuments && id.startsWith("https://");
    return this.#clients.get(id) ?? (ofDocument ? { id, secret: undefined, redirects: undefined } : undefined);
  }

  /** Registers a client (RFC 7591). */
  register(body: string): SandboxResponse {
    const metadata = parseJsonObject(body);
    const redirects = urlsOf(metadata?.["redirect_uris"]);
    if (!metadata || redirects.length === 0)
      return jsonResponse(
        { error: "invalid_redirect_uri", error_description: "redirect_uris: a list of addresses" },
        400,
      );
    const refusal = this.#refusal(
      "register",
      new Map(Object.entries(metadata).map(([name, value]) => [name, String(value)])),
    );
    if (refusal) return refusalResponse(refusal);
    const isPublic = metadata["token_endpoint_auth_method"] === "none";
    const id = randomBytes(12).toString("base64url");
    const secret = isPublic ? undefined : randomBytes(24).toString("base64url");
    this.#clients.set(id, { id, secret, redirects: redirects.map(withoutPort) });
    const secrets = secret === undefined ? {} : { client_secret: secret, client_secret_expires_at: 0 };
    return jsonResponse({ ...metadata, client_id: id, ...secrets }, 201);
  }

  /** Answers the browser of a user. */
  authorize(query: URLSearchParams): SandboxResponse {
    const redirectUri = query.get("redirect_uri") ?? "";
    const client = this.#client(query.get("client_id") ?? "");
    if (!client || !isRedirectOf(client, redirectUri)) return textResponse("unknown client_id or redirect_uri");
    const refusal = this.#refusal("authorize", new Map(query));
    if (typeof refusal?.body === "string") return textResponse(refusal.body, refusal.status);
    const answer = new URL(redirectUri);
    const members = refusal ? (refusal.body as Record<string, string>) : this.#authorized(query, client, redirectUri);
    const { iss } = this.#shape;
    for (const [name, value] of Object.entries({ ...members, state: query.get("state"), ...(iss && { iss }) }))
      if (value !== null) answer.searchParams.set(name, value);
    return { status: 302, headers: { location: answer.href, "cache-control": "no-store" }, body: "" };
  }

  #authorized(query: URLSearchParams, { id }: ShapeClientRecord, redirectUri: string): Record<string, string> {
    const challenge = query.get("code_challenge");
    if (query.get("response_type") !== "code" || challenge === null || query.get("code_challenge_method") !== "S256")
      return { error: "invalid_request", error_description: "response_type=code with PKCE S256 is required" };
    const scope = query.get("scope") ?? "mcp";
    const isOffline = this.#isOffline(new Map(query), this.#consented.has(id));
    this.#consented.add(id);
    const grant = { clientId: id, subject: this.#subject, scope, isOffline };
    return { code: this.#tokens.code({ ...grant, redirectUri, challenge }) };
  }

  /** Whether a request leads to a refresh token. */
  #isOffline(parameters: ReadonlyMap<string, string>, isKnown: boolean): boolean {
    const { offline } = this.#shape;
    return !offline || hasAll(parameters, isKnown ? { ...offline.when, ...offline.again } : offline.when);
  }

  /** Answers a token request. */
  token(form: URLSearchParams, authorization: string | undefined): SandboxResponse {
    const refused = doubleAuthentication(form, authorization);
    if (refused) return refused;
    const client = this.#authenticate(form, authorization);
    if (client === undefined) return jsonResponse({ error: "invalid_client" }, 401);
    const refusal = this.#refusal("token", new Map(form));
    if (refusal) return refusalResponse(refusal);
    const isRefresh = form.get("grant_type") === "refresh_token";
    if (!isRefresh && form.get("grant_type") !== "authorization_code")
      return jsonResponse({ error: "unsupported_grant_type" }, 400);
    const grant = isRefresh
      ? this.#tokens.refresh(form.get("refresh_token") ?? "", client.id)
      : this.#tokens.redeem(form, client.id);
    return grant ? jsonResponse(this.#tokens.issue(grant, isRefresh)) : jsonResponse({ error: "invalid_grant" }, 400);
  }

  #authenticate(form: URLSearchParams, authorization: string | undefined): ShapeClientRecord | undefined {
    const { id, secret } = clientCredentials(form, authorization);
    const client = this.#client(id);
    return client?.secret === secret ? client : undefined;
  }

  #refusal(at: ShapeRefusal["at"], parameters: ReadonlyMap<string, string>): ShapeRefusal | undefined {
    return this.#shape.refusals?.find(
      (one) => one.at === at && hasAll(parameters, one.when ?? {}) && !(one.unless && hasAll(parameters, one.unless)),
    );
  }
}

/** Whether the parameters match all patterns. */
function hasAll(parameters: ReadonlyMap<string, string>, patterns: Readonly<Record<string, string>>): boolean {
  return Object.entries(patterns).every(([name, pattern]) => new RegExp(pattern).test(parameters.get(name) ?? ""));
}

/** A client of a loopback address may use any port (RFC 8252 section 7.3). */
function isRedirectOf({ redirects }: ShapeClientRecord, uri: string): boolean {
  if (!URL.canParse(uri)) return false;
  return redirects ? redirects.includes(withoutPort(uri)) : /^http:\/\/(?:127\.0\.0\.1|localhost)[:/]/.test(uri);
}

function withoutPort(uri: string): string {
  return uri.replace(/^(http:\/\/[^/:]+):\d+/, "$1");
}

function urlsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string" && URL.canParse(one)) : [];
}

function refusalResponse({ status = 400, body }: ShapeRefusal): SandboxResponse {
  return typeof body === "string" ? textResponse(body, status) : jsonResponse(body, status);
}

function textResponse(body: string, status = 400): SandboxResponse {
  return { status, headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" }, body };
}

/** A client that may log users in. */
interface ShapeClientRecord {
  id: string;
  secret: string | undefined;
  /** Its redirect addresses without port; undefined for any on this machine. */
  redirects: readonly string[] | undefined;
}

/** What a code and a token stand for. */
interface ShapeGrant {
  clientId: string;
  subject: string;
  scope: string;
  /** Whether a refresh token is issued for it. */
  isOffline: boolean;
}

interface Code extends ShapeGrant {
  redirectUri: string;
  challenge: string;
  expiresAt: number;
}

/** The grant of an access token. */
interface ShapeToken extends ShapeGrant {
  /** Milliseconds since 1970. */
  expiresAt: number;
}

const CODE_MS = 60_000;
const DEFAULT_LIFETIME = 3600;

/** The codes and tokens of an authorization server. */
class ShapeTokens {
  readonly #shape: ServerShape;
  readonly #clock: SandboxClock;
  readonly #codes = new Map<string, Code>();
  readonly #access = new Map<string, ShapeToken>();
  readonly #refresh = new Map<string, ShapeGrant>();

  constructor(shape: ServerShape, clock: SandboxClock) {
    this.#shape = shape;
    this.#clock = clock;
  }

  /** A code for one token request. */
  code(grant: ShapeGrant & Pick<Code, "redirectUri" | "challenge">): string {
    const code = randomToken();
    this.#codes.set(code, { ...grant, expiresAt: this.#clock.now() + CODE_MS });
    return code;
  }

  /** The grant of a code, once; undefined if anything of the request differs from that of the code. */
  redeem(form: URLSearchParams, clientId: string): ShapeGrant | undefined {
    const code = form.get("code") ?? "";
    const found = this.#codes.get(code);
    this.#codes.delete(code);
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (found === undefined || found.expiresAt <= this.#clock.now() || found.clientId !== clientId) return undefined;
    if (found.redirectUri !== form.get("redirect_uri") || found.challenge !== challenge) return undefined;
    const { subject, scope, isOffline } = found;
    return { clientId, subject, scope, isOffline };
  }

  /** The grant of a refresh token; one that rotates is valid once. */
  refresh(token: string, clientId: string): ShapeGrant | undefined {
    const found = this.#refresh.get(token);
    if (found?.clientId !== clientId) return undefined;
    if (this.#shape.refresh !== "keep") this.#refresh.delete(token);
    return found;
  }

  /** The grant of an access token; undefined for any other token and an expired one. */
  find(token: string): ShapeToken | undefined {
    const found = this.#access.get(token);
    return found && found.expiresAt > this.#clock.now() ? found : undefined;
  }

  /** The members of a token response. */
  issue(grant: ShapeGrant, isRefresh: boolean): Record<string, unknown> {
    const { lifetime = DEFAULT_LIFETIME, refresh = "rotate", token, idToken } = this.#shape;
    const now = this.#clock.now();
    const access = randomToken();
    this.#access.set(access, {
      ...grant,
      expiresAt: lifetime === 0 ? Number.POSITIVE_INFINITY : now + lifetime * 1000,
    });
    const sendsRefreshToken = grant.isOffline && (refresh === "rotate" || (refresh === "keep" && !isRefresh));
    const next = sendsRefreshToken ? randomToken() : undefined;
    if (next !== undefined) this.#refresh.set(next, grant);
    const iat = Math.floor(now / 1000);
    const all = {
      access_token: access,
      token_type: "Bearer",
      expires_in: DEFAULT_LIFETIME,
      refresh_token: next,
      scope: grant.scope,
      id_token: idToken && unsignedJwt({ sub: grant.subject, aud: grant.clientId, iat, exp: iat + 3600, ...idToken }),
      ...token,
    };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== null));
  }
}

function randomToken(): string {
  return randomBytes(24).toString("base64url");
}

function unsignedJwt(claims: object): string {
  const parts = [{ alg: "RS256", typ: "JWT" }, claims].map((part) => Buffer.from(JSON.stringify(part)));
  return [...parts, randomBytes(256)].map((part) => part.toString("base64url")).join(".");
}

/** The client of a token request, by HTTP Basic or else by the form (RFC 6749, section 2.3.1). */
function clientCredentials(form: URLSearchParams, authorization = ""): { id: string; secret: string | undefined } {
  const [, encoded] = /^basic (\S+)$/i.exec(authorization) ?? [];
  if (encoded === undefined) return { id: form.get("client_id") ?? "", secret: form.get("client_secret") ?? undefined };
  const pair = Buffer.from(encoded, "base64").toString().split(":");
  const [id = "", secret] = pair.map((part) => new URLSearchParams(`part=${part}`).get("part") ?? "");
  return { id, secret };
}
