// The client under test: the built CLI as a user would run it, with the flags that the scenario requires.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { namesNoIssuer } from "./trusted.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const cli = join(here, "..", "..", "bin", "agentauth.cjs");
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}");
const url = process.argv.at(-1) ?? "";

const home = mkdtempSync(join(tmpdir(), "agentauth-conformance-"));
const secretFile = (name, text) => {
  const path = join(home, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};

/** The flags of the machine grants; the other scenarios log in. */
const machines = {
  "auth/client-credentials-basic": () => ["--grant", "client-credentials"],
  "auth/client-credentials-jwt": () => [
    ...["--grant", "client-credentials"],
    ...["--private-key", secretFile("key.pem", context.private_key_pem)],
  ],
  "auth/enterprise-managed-authorization": () => [
    ...["--grant", "id-jag"],
    ...["--idp-token-endpoint", context.idp_token_endpoint, "--idp-client-id", context.idp_client_id],
  ],
  "auth/wif-jwt-bearer": () => ["--grant", "jwt-bearer", "--assertion", `file:${secretFile("jwt", context.valid_jwt)}`],
};
const flags = machines[scenario]?.() ?? [];
if (scenario.startsWith("auth/2025-03-26")) flags.push("--legacy-discovery", "--allow-missing-pkce-metadata");
if (scenario === "auth/basic-cimd" || scenario === "auth/offline-access-scope") {
  flags.push("--client-metadata-url", "https://conformance-test.local/client-metadata.json");
}
// These contexts name a client and no issuer to bind its credentials to.
if (namesNoIssuer(scenario)) flags.push("--trust-named-issuer");
if (context.client_id) flags.push("--client-id", context.client_id);

const env = {
  ...process.env,
  AGENTAUTH_HOME: home,
  BROWSER: `"${process.execPath}" "${join(here, "browser.mjs")}"`,
  ...(context.idp_id_token && { AGENTAUTH_ID_TOKEN: context.idp_id_token }),
  ...(context.client_secret && { AGENTAUTH_CLIENT_SECRET: context.client_secret }),
};
const run = (...args) =>
  spawnSync(process.execPath, [cli, ...args], { env, stdio: ["ignore", "inherit", "inherit"] }).status ?? 1;

try {
  // Three processes, one login: the others use the stored login of the first, and step it up.
  process.exitCode =
    run("login", url, ...flags) ||
    run("mcp", "tools", url, "--login") ||
    run("mcp", "call", url, "test-tool", "--login");
} finally {
  rmSync(home, { recursive: true, force: true });
}
