// A protected MCP server: it accepts tokens of its issuer only, and publishes its metadata.
import { strict as assert } from "node:assert";
import { createServer } from "node:http";
import { createResourceServer } from "agentauth/resource-server";

const resource = "https://mcp.example/mcp";
const issuer = "https://auth.example/pool_1";
const curve = { name: "ECDSA", namedCurve: "P-256" };
const { privateKey, publicKey } = await crypto.subtle.generateKey(curve, true, ["sign", "verify"]);
const published = { ...(await crypto.subtle.exportKey("jwk", publicKey)), kid: "key-1", alg: "ES256", use: "sig" };

const documents = {
  [`${issuer}/.well-known/oauth-authorization-server`]: { issuer, jwks_uri: `${issuer}/jwks` },
  [`${issuer}/jwks`]: { keys: [published] },
};
const fetch = async (request) => {
  const document = documents[request.url];
  return document ? Response.json(document) : new Response(null, { status: 404 });
};

async function sign(claims) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "ES256", typ: "at+jwt", kid: "key-1" })}.${part(claims)}`;
  const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, Buffer.from(signed));
  return `${signed}.${Buffer.from(signature).toString("base64url")}`;
}

const now = Math.floor(Date.now() / 1000);
const claims = { iss: issuer, aud: resource, sub: "alice", client_id: "agent", scope: "mcp", exp: now + 300 };
const good = await sign(claims);
const foreign = await sign({ ...claims, aud: "https://other.example/mcp" });

const server = createResourceServer({ resource, authorizationServers: [issuer], requiredScopes: ["mcp"], fetch });
const handler = server.protect((_, { verified, authInfo }) => Response.json([verified.subject, authInfo.clientId]));
const ask = (token) => handler(new Request(resource, token && { headers: { authorization: `Bearer ${token}` } }));

const taken = await ask(good);
assert.equal(taken.status, 200);
assert.deepEqual(await taken.json(), ["alice", "agent"]);
for (const token of [undefined, foreign, `${good}x`]) assert.equal((await ask(token)).status, 401);
assert.match(
  (await ask()).headers.get("www-authenticate"),
  /resource_metadata="https:\/\/mcp\.example\/\.well-known\//,
);
const metadata = await handler(new Request(`https://mcp.example${server.metadataPath}`));
assert.deepEqual((await metadata.json()).authorization_servers, [issuer]);

const guard = server.middleware();
const listener = createServer((request, response) =>
  guard(request, response, (error) => response.writeHead(error ? 500 : 200).end(request.auth?.extra.subject)),
);
await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${listener.address().port}/mcp`;
const answer = await globalThis.fetch(address, { headers: { authorization: `Bearer ${good}` } });
assert.equal(await answer.text(), "alice");
assert.equal((await globalThis.fetch(address)).status, 401);
listener.closeAllConnections();
listener.close();
