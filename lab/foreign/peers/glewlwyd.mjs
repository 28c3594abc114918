// Glewlwyd, of Debian: an issuer with clients that register themselves, refresh tokens for one use, and tokens for the resource.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, NotHere, packageVersion, startProgram } from "../peer.mjs";
import { startGuarded } from "../servers.mjs";

const TABLES = "/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3";
const ADMIN = { username: "admin", password: "password" };

export const rows = [{ name: "glewlwyd", title: "Glewlwyd", start, browse }];

async function start() {
  if (!existsSync(TABLES)) throw new NotHere("glewlwyd is missing: apt-get install glewlwyd");
  const port = await freePort();
  const origin = `http://localhost:${port}`;
  const issuer = `${origin}/api/oidc`;
  const database = mkdtempSync(join(tmpdir(), "agentauth-foreign-"));
  const server = await startGuarded(issuer, { host: "localhost" });
  await createTables(join(database, "db"));
  const glewlwyd = await startProgram({
    program: "glewlwyd",
    port,
    files: () => ({ config: configuration(port, join(database, "db")) }),
    words: (work) => ["--config-file", join(work, "config")],
  });
  await configure(origin, issuer, server.url);
  const close = async () => {
    await Promise.all([glewlwyd.close(), server.close()]);
    rmSync(database, { recursive: true, force: true });
  };
  return { ...server, says: "subject ", version: packageVersion("glewlwyd"), revoked: true, close };
}

async function createTables(path) {
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(path);
  database.exec(readFileSync(TABLES, "utf8"));
  database.close();
}

const configuration = (port, path) => `port=${port}
external_url="http://localhost:${port}"
bind_address="127.0.0.1"
login_url="login"
api_prefix="api"
cookie_secure=0
log_mode="console"
log_level="WARNING"
session_expiration=3600
session_key="GLEWLWYD2_SESSION_ID"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
hash_algorithm="SHA512"
database = { type = "sqlite3" path = "${path}" };
`;

/** Gives the issuer its key and the scope for a server, as its administrator does. */
async function configure(origin, issuer, resource) {
  const { exportPKCS8, exportSPKI, generateKeyPair } = await import("jose");
  const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
  let cookie;
  const send = async (path, method, body) => {
    const response = await fetch(`${origin}/api/${path}`, {
      method,
      headers: { "content-type": "application/json", ...(cookie && { cookie }) },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    cookie ??= response.headers.getSetCookie()[0]?.split(";")[0];
  };
  await send("auth/", "POST", ADMIN);
  await send("scope/", "POST", { name: "mcp", display_name: "MCP", password_required: false });
  await send("user/admin", "PUT", { ...ADMIN, scope: ["g_admin", "g_profile", "openid", "mcp"] });
  await send("mod/plugin/", "POST", {
    module: "oidc",
    name: "oidc",
    display_name: "oidc",
    parameters: {
      iss: issuer,
      "jwt-type": "ecdsa",
      "jwt-key-size": "256",
      key: await exportPKCS8(privateKey),
      cert: await exportSPKI(publicKey),
      "jwks-show": true,
      "access-token-duration": 3600,
      "refresh-token-duration": 86400,
      "code-duration": 60,
      "refresh-token-one-use": "always",
      "refresh-token-rolling": true,
      "allow-non-oidc": true,
      "auth-type-code-enabled": true,
      "auth-type-refresh-enabled": true,
      "pkce-allowed": true,
      "pkce-required": true,
      "allowed-scope": ["openid", "mcp"],
      "introspection-revocation-allowed": true,
      "introspection-revocation-allow-target-client": true,
      "register-client-allowed": true,
      "register-client-auth-scope": [],
      "register-client-credentials-scope": [],
      "resource-allowed": true,
      "resource-scope": { mcp: [resource] },
      "oauth-as-iss-id": true,
    },
  });
}

/** Logs in, and grants the scopes, as its page does. */
async function browse(browser, address) {
  const { url } = await browser.open(address);
  const { origin } = url;
  const send = (path, method, body) =>
    browser.open(`${origin}/api/auth/${path}`, {
      method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await send("", "POST", ADMIN);
  await send(`grant/${url.searchParams.get("client_id")}`, "PUT", { scope: "mcp openid" });
  await browser.open(`${url.searchParams.get("callback_url")}&g_continue`);
}
