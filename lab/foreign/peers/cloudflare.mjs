// Cloudflare's OAuth provider, under the runtime of its workers.
import { join } from "node:path";
import { folder, versionOf } from "../peer.mjs";

const PROVIDER = "@cloudflare/workers-oauth-provider";

export const rows = [
  { name: "cloudflare", title: "Cloudflare workers-oauth-provider under workerd", quick: true, start: () => start() },
  // As Notion has it: no public clients, short tokens.
  {
    name: "cloudflare-notion",
    title: "Cloudflare workers-oauth-provider without public clients",
    start: () => start({ disallowPublicClientRegistration: true, accessTokenTTL: 600 }),
  },
  { name: "mcp-agent", title: "Cloudflare Agents: McpAgent", start: () => start({}, "mcp-agent", "agents") },
];

async function start(settings = {}, worker = "mcp-sdk", name = undefined) {
  const { build } = await import("esbuild");
  const { Miniflare } = await import("miniflare");
  const bundled = await build({
    entryPoints: [join(folder, "peers", "cloudflare", `${worker}.js`)],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*", "path"],
    logLevel: "silent",
  });
  const miniflare = new Miniflare({
    modules: true,
    script: bundled.outputFiles[0].text,
    compatibilityDate: "2026-07-01",
    compatibilityFlags: ["nodejs_compat", "global_fetch_strictly_public"],
    kvNamespaces: ["OAUTH_KV"],
    bindings: { SETTINGS: settings },
    durableObjects: worker === "mcp-agent" ? { MCP_OBJECT: { className: "Whoami", useSQLite: true } } : {},
    host: "127.0.0.1",
    port: 0,
  });
  const { origin } = await miniflare.ready;
  return {
    url: `${origin}/mcp`,
    version: name === undefined ? versionOf(PROVIDER) : `${versionOf(name)}, ${PROVIDER} ${versionOf(PROVIDER)}`,
    tool: "whoami",
    says: "subject carol",
    revoked: true,
    close: () => miniflare.dispose(),
  };
}
