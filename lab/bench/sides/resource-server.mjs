// Verifies tokens in turn: bare jose, and a resource server. Prints the CPU of each in µs per token. All keys are here:
// what is measured sends no requests.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { auth } from "express-oauth2-jwt-bearer";
import { createVerifier } from "fast-jwt";
import {
  calculateJwkThumbprint,
  createLocalJWKSet,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  jwtVerify,
  SignJWT,
} from "jose";

// Replaceable by another build, to compare the two.
const { createResourceServer } = await import(
  process.env.BENCH_RESOURCE_SERVER ?? "../../../dist/resource-server/index.js"
);

const [count] = process.argv.slice(2).map(Number);
const resource = "https://mcp.example/mcp";
const issuer = "https://auth.example";
const now = Math.floor(Date.now() / 1000);

const [key, clientKey] = [await generateKeyPair("ES256"), await generateKeyPair("ES256", { extractable: true })];
const keys = { keys: [{ ...(await exportJWK(key.publicKey)), kid: "k1", alg: "ES256", use: "sig" }] };
const clientJwk = await exportJWK(clientKey.publicKey);
const jkt = await calculateJwkThumbprint(clientJwk);

const answers = {
  "/.well-known/oauth-authorization-server": {
    issuer,
    jwks_uri: `${issuer}/jwks`,
    introspection_endpoint: `${issuer}/introspect`,
  },
  "/jwks": keys,
  "/introspect": {
    active: true,
    iss: issuer,
    aud: resource,
    sub: "alice",
    client_id: "agent",
    scope: "mcp",
    exp: now + 3600,
  },
};
const fetch = async (request) => Response.json(answers[new URL(request.url).pathname] ?? {}, {});
const base = { resource, authorizationServers: [issuer], requiredScopes: ["mcp"], fetch };
const server = createResourceServer(base);
const opaque = createResourceServer({
  ...base,
  tokens: "introspection",
  introspection: { clientId: "server", clientSecret: "secret" },
});

function sign(jti, more = {}) {
  const claims = {
    iss: issuer,
    aud: resource,
    sub: "alice",
    client_id: "agent",
    scope: "mcp",
    jti,
    iat: now,
    exp: now + 3600,
  };
  return new SignJWT({ ...claims, ...more })
    .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid: "k1" })
    .sign(key.privateKey);
}

function prove(token, jti) {
  const ath = createHash("sha256").update(token).digest("base64url");
  return new SignJWT({ htm: "POST", htu: resource, iat: now, jti, ath })
    .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk: clientJwk })
    .sign(clientKey.privateKey);
}

const many = (make) => Promise.all(Array.from({ length: count }, (_, at) => make(String(at))));
const [joseTokens, tokens, boundTokens] = [
  await many((at) => sign(`jose-${at}`)),
  await many((at) => sign(at)),
  await many((at) => sign(`bound-${at}`, { cnf: { jkt } })),
];
const proofs = await Promise.all(boundTokens.map((token, at) => prove(token, `p-${at}`)));
const find = createLocalJWKSet(keys);
const bare = (token) => jwtVerify(token, find, { issuer, audience: resource, typ: "at+jwt" });
const presented = (proof) => ({ presented: { scheme: "DPoP", proof, method: "POST", url: "/mcp" } });

// express-oauth2-jwt-bearer reads the keys over HTTP, once.
const keyServer = createServer((_, response) => {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(keys));
});
await new Promise((resolve) => keyServer.listen(0, "127.0.0.1", resolve));
const expressAuth = auth({
  issuer,
  audience: resource,
  jwksUri: `http://127.0.0.1:${keyServer.address().port}/jwks`,
  tokenSigningAlg: "ES256",
  cacheMaxAge: 3_600_000,
});
const officialAuth = requireBearerAuth({
  verifier: {
    async verifyAccessToken(token) {
      const { payload } = await bare(token);
      return { token, clientId: payload.client_id, scopes: payload.scope.split(" "), expiresAt: payload.exp };
    },
  },
  requiredScopes: ["mcp"],
});
const fastOptions = {
  key: await exportSPKI(key.publicKey),
  algorithms: ["ES256"],
  allowedIss: issuer,
  allowedAud: resource,
};
const fastJwt = createVerifier({ ...fastOptions, cache: false });
const fastJwtCached = createVerifier({ ...fastOptions, cache: true });

/** Calls a middleware of Express with a request that has a token; rejects where it refuses. */
function pass(middleware, token) {
  const headers = { authorization: `Bearer ${token}`, host: "mcp.example" };
  const get = (name) => headers[name.toLowerCase()];
  const app = { get: () => () => false };
  const request = { headers, get, app, method: "POST", url: "/mcp", protocol: "https", query: {}, is: () => false };
  return new Promise((resolve, reject) => {
    const refused = () => reject(new Error("refused"));
    const response = { set: refused, status: refused };
    middleware(request, response, (error) => (error ? reject(error) : resolve(request.auth)));
  });
}

const sides = {
  jose: (at) => bare(joseTokens[at]),
  fresh: (at) => server.verify(tokens[at]),
  again: () => server.verify(tokens[0]),
  joseTwice: async (at) => {
    await bare(joseTokens[at]);
    await bare(joseTokens[at]);
  },
  dpop: (at) => server.verify(boundTokens[at], presented(proofs[at])),
  official: (at) => pass(officialAuth, joseTokens[at]),
  express: (at) => pass(expressAuth, joseTokens[at]),
  fastJwt: (at) => fastJwt(joseTokens[at]),
  fastJwtAgain: () => fastJwtCached(joseTokens[0]),
  introspected: () => opaque.verify("opaque-token"),
};

// The first tenth warms up. The sides take turns in parts, so that a disturbance of the machine affects each of them.
const spent = Object.fromEntries(Object.keys(sides).map((name) => [name, 0]));
const part = Math.ceil(count / 10);
for (let from = 0; from < count; from += part) {
  for (const [name, verify] of Object.entries(sides)) {
    const before = process.cpuUsage();
    for (let at = from; at < Math.min(count, from + part); at++) await verify(at);
    const { user, system } = process.cpuUsage(before);
    if (from > 0) spent[name] += user + system;
  }
}
console.log(JSON.stringify(Object.fromEntries(Object.entries(spent).map(([name, us]) => [name, us / (count - part)]))));
keyServer.close();
keyServer.closeAllConnections();
