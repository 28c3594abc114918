// A platform whose users connect MCP servers, on Hono: a settings page with plain forms, and no script.
//
//   ORIGIN=http://localhost:3000 MCP_SERVERS="https://mcp.example/mcp https://other.example/mcp" STORE=./logins \
//     SESSION_SECRET=<32 characters> npx tsx examples/vault/server.ts
import { serve } from "@hono/node-server";
import { AgentClient } from "agentauth";
import { fileStore } from "agentauth/node";
import { vaultHandler } from "agentauth/vault";
import { Hono } from "hono";
import { getSignedCookie, setSignedCookie } from "hono/cookie";
import { connectionsPage, STYLE } from "./page.js";

const { ORIGIN = "http://localhost:3000", MCP_SERVERS = "", STORE = "", SESSION_SECRET = "" } = process.env;
if (SESSION_SECRET.length < 32) throw new Error("SESSION_SECRET must have at least 32 characters");
const servers = MCP_SERVERS.split(" ").filter((server) => server !== "");

// One client for all users. Many machines share a store in Redis or PostgreSQL instead.
const agents = new AgentClient({ store: fileStore(STORE), clientName: "Example platform" });

const app = new Hono<{ Variables: { user: string } }>();

// Replace these two by the sessions of your platform.
app.get("/session/:user{[a-z]+}", async (context) => {
  const options = { httpOnly: true, sameSite: "Lax", path: "/" } as const;
  await setSignedCookie(context, "session", context.req.param("user"), SESSION_SECRET, options);
  return context.redirect("/");
});
app.use(async (context, next) => {
  context.set("user", (await getSignedCookie(context, SESSION_SECRET, "session")) || "");
  await next();
});

/** Who sent a request, for the vault, which gets requests alone. */
const users = new WeakMap<Request, string>();
const vault = vaultHandler(agents, {
  authenticate: (request) => {
    const user = users.get(request);
    return user === undefined ? undefined : { user };
  },
  baseUrl: `${ORIGIN}/vault`,
  servers,
  // The browser gets the code of an error only.
  onError: (error) => console.error(JSON.stringify(error)),
});
app.all("/vault/*", (context) => {
  const request = context.req.raw;
  if (context.get("user") !== "") users.set(request, context.get("user"));
  return vault.fetch(request);
});

app.get("/style.css", (context) => context.body(STYLE, 200, { "content-type": "text/css; charset=utf-8" }));
app.get("/", async (context) => {
  const user = context.get("user");
  if (user === "") return context.text("Open /session/alice first.", 401);
  const { items } = await agents.for({ user }).connections();
  const { token, cookie } = vault.formToken(context.req.raw);
  if (cookie !== undefined) context.header("set-cookie", cookie, { append: true });
  context.header("cache-control", "no-store");
  context.header(
    "content-security-policy",
    "default-src 'none'; style-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'",
  );
  return context.html(connectionsPage({ user, servers, connections: items, token, error: context.req.query("error") }));
});

const { port, hostname } = new URL(ORIGIN);
serve({ fetch: app.fetch, hostname, port: Number(port) }, () => console.log(`listening at ${ORIGIN}`));
