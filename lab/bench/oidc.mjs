// oidc-provider alone, with what the sandbox configures of the metadata: prints its address as its first line of output.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = { ...privateKey.export({ format: "jwk" }), kid: "k1", alg: "ES256", use: "sig" };
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    cookies: { keys: ["bench"] },
    clients: [],
    responseTypes: ["code"],
    scopes: ["openid", "offline_access"],
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
process.on("SIGTERM", () => process.exit(0));
