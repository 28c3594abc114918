// Verifies tokens in turn: bare jose, and a resource server. Prints the CPU of each in µs per token. All keys are here:
// what is measured sends no requests.
import { createHash } from "node:crypto";
import { calculateJwkThumbprint, createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";

// Replaceable by another build, to compare the two.
const { createResourceServer } = await import(
  process.env.BENCH_RESOURCE_SERVER ?? "../../dist/resource-server/index.js"
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

const sides = {
  jose: (at) => bare(joseTokens[at]),
  fresh: (at) => server.verify(tokens[at]),
  again: () => server.verify(tokens[0]),
  joseTwice: async (at) => {
    await bare(joseTokens[at]);
    await bare(joseTokens[at]);
  },
  dpop: (at) => server.verify(boundTokens[at], presented(proofs[at])),
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
