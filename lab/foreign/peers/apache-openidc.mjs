// Apache with mod_auth_openidc in front of an MCP server that knows nothing of tokens: it verifies the JWTs of oidc-provider by
// its key, and names no metadata in its challenge.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { freePort, NotHere, packageVersion, programVersion, startProgram } from "../peer.mjs";
import { answerMcp, SAID, startHttp, startOidcProvider } from "../servers.mjs";
import { loadModule } from "./fronts.mjs";

const MODULES = ["mpm_event", "authn_core", "authz_core", "authz_user", "proxy", "proxy_http", "alias", "auth_openidc"];
const METADATA = "/.well-known/oauth-protected-resource/mcp";

export const rows = [{ name: "apache-openidc", title: "Apache with mod_auth_openidc, issuer oidc-provider", start }];

async function start() {
  if (!existsSync("/usr/lib/apache2/modules/mod_auth_openidc.so"))
    throw new NotHere("mod_auth_openidc is missing: apt-get install apache2 libapache2-mod-auth-openidc");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  // It crashes over a key of an elliptic curve.
  const provider = await startOidcProvider({}, "RS256");
  const server = await startHttp(
    () => (request, response) =>
      answerMcp(request, response, ({ requestInfo }) => requestInfo.headers["oidc_claim_sub"]),
  );
  const apache = await startProgram({
    program: "apache2",
    port,
    words: (work) => ["-f", join(work, "config"), "-D", "FOREGROUND"],
    files: (work) => ({
      key: provider.publicKey,
      metadata: JSON.stringify({ resource: url, authorization_servers: [provider.issuer], scopes_supported: ["mcp"] }),
      config: `Listen 127.0.0.1:${port}
ServerName 127.0.0.1
ServerRoot ${work}
PidFile apache.pid
ErrorLog error.log
${MODULES.map(loadModule).join("\n")}
OIDCOAuthVerifyCertFiles 1#${work}/key
OIDCCryptoPassphrase foreign
Alias ${METADATA} ${work}/metadata
<Location ${METADATA}>
  ForceType application/json
  Require all granted
</Location>
<Location /mcp>
  AuthType oauth20
  Require claim aud:${url}
  ProxyPass ${server.origin}/mcp
</Location>
`,
    }),
  });
  const close = () => Promise.all([apache.close(), server.close(), provider.close()]);
  return {
    ...SAID,
    url,
    version: `${packageVersion("libapache2-mod-auth-openidc")}, apache ${programVersion("apache2")}`,
    revoked: true,
    close,
  };
}
