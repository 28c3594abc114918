// A platform whose users connect MCP servers, on Hono: a page with plain forms, and no script.
//
//   ORIGIN=http://localhost:3000 MCP_SERVERS="https://mcp.example/mcp https://other.example/mcp" STORE=./logins \
//     SESSION_SECRET=<32 characters> npx tsx examples/connect-page/server.ts
import { serve } from "@hono/node-server";
import { AgentClient, isAgentAuthError } from "agentauth";
import { fileStore } from "agentauth/node";
import { type Context, Hono } from "hono";
import { getSignedCookie, setSignedCookie } from "hono/cookie";
import { csrf } from "hono/csrf";
import { secureHeaders } from "hono/secure-headers";
import { connectPage, STYLE } from "./page.js";

const { ORIGIN = "http://localhost:3000", MCP_SERVERS = "", STORE = "", SESSION_SECRET = "" } = process.env;
if (SESSION_SECRET.length < 32) throw new Error("SESSION_SECRET must have at least 32 characters");
// Users connect no other server: the platform sends requests to those that it knows.
const servers = MCP_SERVERS.split(" ").filter((server) => server !== "");
const redirectUri = `${ORIGIN}/callback`;

// One client for all users. Many machines share a store in Redis or PostgreSQL instead.
const agents = new AgentClient({ store: fileStore(STORE), clientName: "Example platform" });

const app = new Hono<{ Variables: { user: string; mine: AgentClient } }>();
// Without form-action: browsers apply it to the redirect of a form, which leads to the issuer.
const defaultSrc = ["'none'"];
const contentSecurityPolicy = { defaultSrc, styleSrc: ["'self'"], imgSrc: ["data:"], frameAncestors: defaultSrc };
app.use(secureHeaders({ contentSecurityPolicy, referrerPolicy: "same-origin" }));
// A form of another site changes nothing here.
app.use(csrf({ origin: ORIGIN }));

app.get("/style.css", (context) => context.body(STYLE, 200, { "content-type": "text/css; charset=utf-8" }));
// For a readiness probe.
app.get("/ready", async (context) => {
  const { ready, errors } = await agents.health();
  if (!ready) console.error(JSON.stringify({ ready, errors }));
  return context.text("", ready ? 200 : 503);
});

// Replace these two by the sessions of your platform. Their cookie needs SameSite=Lax: the browser comes back from the issuer.
app.get("/session/:user{[a-z]+}", async (context) => {
  const options = { httpOnly: true, sameSite: "Lax", path: "/" } as const;
  await setSignedCookie(context, "session", context.req.param("user"), SESSION_SECRET, options);
  return context.redirect("/");
});
app.use(async (context, next) => {
  const user = await getSignedCookie(context, SESSION_SECRET, "session");
  if (!user) return context.text("Open /session/alice first.", 401);
  context.set("user", user);
  context.set("mine", agents.for({ user }));
  context.header("cache-control", "no-store");
  return next();
});

app.get("/", async (context) => {
  const { items } = await context.var.mine.connections();
  const error = context.req.query("error");
  return context.html(connectPage({ user: context.var.user, servers, connections: items, error }));
});

app.post("/connect", async (context) => {
  const { server } = await context.req.parseBody();
  if (typeof server !== "string" || !servers.includes(server)) return context.notFound();
  return toIssuer(context, await context.var.mine.startLogin(server, { redirectUri, returnTo: "/" }));
});

app.get("/callback", async (context) => {
  const result = await context.var.mine.handleCallback(context.req.raw);
  // The issuer may reject an optional scope: the browser asks once more, without it.
  return result.done ? context.redirect("/") : toIssuer(context, { ...result, url: result.redirect });
});

app.post("/disconnect", async (context) => {
  const { server, account } = await context.req.parseBody();
  if (typeof server !== "string" || typeof account !== "string") return context.notFound();
  await context.var.mine.disconnect(server, { account: account || null });
  return context.redirect("/", 303);
});

app.onError((error, context) => {
  if ("getResponse" in error) return error.getResponse();
  // The browser gets the code of an error only: its message may have text of a server in it.
  console.error(JSON.stringify(error));
  const code = isAgentAuthError(error) ? error.code : "internal_error";
  return context.redirect(`/?${new URLSearchParams({ error: code })}`, 303);
});

/** Sends the browser to the issuer, with the cookie by which it is known when it comes back. */
function toIssuer(context: Context, { url, cookie }: { url: string; cookie: string }): Response {
  context.header("set-cookie", cookie, { append: true });
  return context.redirect(url, 303);
}

const { port, hostname } = new URL(ORIGIN);
const listening = () => console.log(`listening at ${ORIGIN}`);
const server = serve({ fetch: app.fetch, hostname, port: Number(port) }, listening);

// Refreshes in flight end, and what they got is saved.
process.once("SIGTERM", async () => {
  server.close();
  await agents.close({ graceMs: 30_000 });
  process.exit();
});
