import {
  exportJWK,
  type GenerateKeyPairResult,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  SignJWT,
} from "jose";
import { it as base } from "vitest";
import { createResourceServer, type ResourceServer } from "../../src/resource-server/index.js";
import type { ResourceServerOptions } from "../../src/resource-server/options.js";
import type { ResourceServerEvent } from "../../src/resource-server/refusal.js";
import { FakeClock } from "../helpers/clock.js";
import { type Handler, startIssuer, type TestIssuer } from "../helpers/issuer.js";
import { isDetailOf } from "./details.js";

export const RESOURCE = "https://mcp.example/mcp";
export const METADATA_URL = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
/** The algorithms that proofs of a key are taken with. */
export const ALGS = "ES256 Ed25519 EdDSA PS256 RS256";
/** The response to a request without a token. */
export const CHALLENGED = `Bearer resource_metadata="${METADATA_URL}", DPoP algs="${ALGS}", resource_metadata="${METADATA_URL}"`;
/** The response to every bearer token that is not accepted. */
export const REFUSED = `Bearer error="invalid_token", error_description="the access token was not accepted", resource_metadata="${METADATA_URL}", DPoP algs="${ALGS}", resource_metadata="${METADATA_URL}"`;

/** A key of an issuer, and its public half as the issuer publishes it. */
export interface Key extends GenerateKeyPairResult {
  jwk: JWK;
}

export async function makeKey(kid: string | undefined = "key-1", alg = "ES256"): Promise<Key> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...pair, jwk: { ...(await exportJWK(pair.publicKey)), ...(kid !== undefined && { kid }), alg, use: "sig" } };
}

export type Claims = Record<string, unknown>;
export type HeadersLike = Record<string, string> | [string, string][];

/** An authorization server on loopback that publishes keys and can sign anything with them. */
export interface Signer {
  issuer: TestIssuer;
  key: Key;
  /** What stands in its key set; a test changes it. */
  keys: JWK[];
  clock: FakeClock;
  /** The claims of a token that is good. */
  claims(over?: Claims): Claims;
  /** A token of these claims, over those of one that is good. */
  sign(over?: Claims, header?: Record<string, unknown>, key?: Key): Promise<string>;
  /** A resource server that takes its tokens. */
  server(options?: Partial<ResourceServerOptions>): Server;
}

/** A resource server, and what it logged. */
export interface Server extends ResourceServer {
  log: ResourceServerEvent[];
  /** The reasons of the refusals, in order. */
  reasons(): string[];
  /** Asks it with a token, or with these headers. */
  ask(token?: string | HeadersLike, options?: Parameters<ResourceServer["protect"]>[1]): Promise<Response>;
}

export async function startSigner(name = "as", path = "/pool"): Promise<Signer> {
  const issuer = await startIssuer(name, [], path);
  const key = await makeKey();
  const clock = new FakeClock();
  const keys = [key.jwk];
  const claims = (over: Claims = {}): Claims => {
    const now = Math.floor(clock.epoch() / 1000);
    const good = { iss: issuer.issuer, aud: RESOURCE, sub: "alice", client_id: "agent", scope: "mcp" };
    return { ...good, iat: now, exp: now + 300, jti: "id-1", ...over };
  };
  const signer: Signer = {
    issuer,
    key,
    keys,
    clock,
    claims,
    sign: (over = {}, header = {}, by = key) =>
      new SignJWT(claims(over))
        .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid: "key-1", ...header } as JWTHeaderParameters)
        .sign(by.privateKey),
    server: (options = {}) => startServerOf({ authorizationServers: [issuer.issuer], clock, ...options }),
  };
  issuer.routes[`${path}/jwks`] = () => ({ json: { keys: signer.keys } });
  return signer;
}

/** Tests with a signer and a resource server that takes its tokens. */
export const it = base.extend<{ options: Partial<ResourceServerOptions>; signer: Signer; server: Server }>({
  /** The options of the server. */
  options: {},
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of the fixtures that one needs from its parameter.
  signer: async ({}, use) => use(await startSigner()),
  server: async ({ options, signer }, use) => use(signer.server(options)),
});

function startServerOf(options: Partial<ResourceServerOptions> & { authorizationServers: readonly string[] }): Server {
  const log: ResourceServerEvent[] = [];
  const server = createResourceServer({
    resource: RESOURCE,
    log: (event) => log.push(event),
    random: () => 0,
    ...options,
  });
  return {
    ...server,
    log,
    reasons: () =>
      log.map((event) => {
        const reason = event.type === "refused" ? event.reason : event.code;
        if (!isDetailOf(reason, event.detail)) throw new Error(`the log says of ${reason}: ${event.detail}`);
        return reason;
      }),
    ask(token, protect) {
      const headers = typeof token === "string" ? { authorization: `Bearer ${token}` } : (token ?? {});
      const url = server.metadata().resource;
      const handler = server.protect((_, { verified }) => Response.json(verified), protect);
      return handler(new Request(url, { method: "POST", headers }));
    },
  };
}

/** What matters of an answer: its status and its challenge. */
export function outcome(response: Response): [number, string | null] {
  return [response.status, response.headers.get("www-authenticate")];
}

/** The introspection endpoint of an issuer says this of every token. */
export function introspecting(signer: Signer, route: Handler): void {
  signer.issuer.routes["/pool/introspect"] = route;
}

/** How many requests an issuer got for a path below its own. */
export function countOf({ issuer }: Signer, path: string): number {
  return issuer.to(`${issuer.path}${path}`).length;
}

export const INTROSPECTION = { clientId: "resource server", clientSecret: "pa:ss word" };

/** Lets time go by. */
export function pass({ clock }: Signer, seconds: number): Promise<void> {
  return clock.sleep(seconds * 1000, new AbortController().signal);
}

/** A JWT with these parts, unsigned unless a signature is given. */
export function assemble(header: unknown, claims: unknown, signature = ""): string {
  const part = (value: unknown) =>
    Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
  return `${part(header)}.${part(claims)}.${signature}`;
}
