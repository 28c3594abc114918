// A platform whose users connect MCP servers, on Hono: a settings page with plain forms, and no script.
//
//   ORIGIN=http://localhost:3000 MCP_SERVERS="https://mcp.example/mcp https://other.example/mcp" STORE=./logins \
//     SESSION_SECRET=<32 characters> npx tsx examples/vault/server.ts
import { serve } from "@hono/node-server";
import { AgentClient } from "agentauth";
import { fileStore } from "agentauth/node";
import { vaultHandler } from "agentauth/vault";
import { Hono } from "hono";
import { setSignedCookie } from "hono/cookie";
import { parseSigned } from "hono/utils/cookie";
import { connectionsPage, STYLE } from "./page.js";

const { ORIGIN = "http://localhost:3000", MCP_SERVERS = "", STORE = "", SESSION_SECRET = "" } = process.env;
if (SESSION_SECRET.length < 32) throw new Error("SESSION_SECRET must have at least 32 characters");
const servers = MCP_SERVERS.split(" ").filter((server) => server !== "");

// One client for all users. Many machines share a store in Redis or PostgreSQL instead.
const agents = new AgentClient({ store: fileStore(STORE), clientName: "Example platform" });

const app = new Hono();

// Replace these two by the sessions of your platform.
app.get("/session/:user{[a-z]+}", async (context) => {
  const options = { httpOnly: true, sameSite: "Lax", path: "/" } as const;
  await setSignedCookie(context, "session", context.req.param("user"), SESSION_SECRET, options);
  return context.redirect("/");
});
async function userOf(request: Request): Promise<{ user: string } | undefined> {
  const { session } = await parseSigned(request.headers.get("cookie") ?? "", SESSION_SECRET, "session");
  return session ? { user: session } : undefined;
}

const vault = vaultHandler(agents, {
  authenticate: userOf,
  baseUrl: `${ORIGIN}/vault`,
  servers,
  // The browser gets the code of an error only.
  onError: (error) => console.error(JSON.stringify(error)),
});
app.all("/vault/*", (context) => vault.fetch(context.req.raw));

app.get("/style.css", (context) => context.body(STYLE, 200, { "content-type": "text/css; charset=utf-8" }));
app.get("/", async (context) => {
  const user = await userOf(context.req.raw);
  if (user === undefined) return context.text("Open /session/alice first.", 401);
  const { items } = await agents.for(user).connections();
  const { token, cookie } = vault.formToken(context.req.raw);
  if (cookie !== undefined) context.header("set-cookie", cookie, { append: true });
  context.header("cache-control", "no-store");
  context.header(
    "content-security-policy",
    "default-src 'none'; style-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'",
  );
  return context.html(
    connectionsPage({ ...user, servers, connections: items, token, error: context.req.query("error") }),
  );
});

// For a readiness probe.
app.get("/ready", async (context) => {
  const { ready, errors } = await agents.health();
  if (!ready) console.error(JSON.stringify({ ready, errors }));
  return context.text("", ready ? 200 : 503);
});

const { port, hostname } = new URL(ORIGIN);
const listening = () => console.log(`listening at ${ORIGIN}`);
const server = serve({ fetch: app.fetch, hostname, port: Number(port) }, listening);

// Refreshes in flight end, and what they got is saved.
process.once("SIGTERM", async () => {
  server.close();
  await agents.close({ graceMs: 30_000 });
  process.exit();
});
