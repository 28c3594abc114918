// A web app whose users log in at an MCP server. Several processes of it share one folder: a login that starts in one is
// finished in any other.
//
//   ORIGIN=http://localhost:3000 MCP_URL=https://mcp.example/mcp STORE=./logins SESSION_SECRET=<32 characters> \
//     PORT=3000 node server.ts
import { createHmac, timingSafeEqual } from "node:crypto";
import { AgentClient, loginMiddlewares } from "agentauth";
import { fileStore } from "agentauth/node";
import express, { type Request } from "express";

const { ORIGIN = "", MCP_URL = "", STORE = "", SESSION_SECRET = "", PORT = "3000" } = process.env;
if (SESSION_SECRET.length < 32) throw new Error("SESSION_SECRET must have at least 32 characters");

const store = fileStore(STORE);

/** The client of one user: the profile separates their logins from those of all others. */
function clientOf(user: string): AgentClient {
  return new AgentClient({ store, profile: user, clientName: "Example web app" });
}

// Replace these two by the sessions of your app.
const sign = (user: string) => createHmac("sha256", SESSION_SECRET).update(user).digest("base64url");

function userOf(request: Request): string | undefined {
  const [, user, signature = ""] = /(?:^|; )session=([a-z]+)\.([\w-]+)/.exec(request.headers.cookie ?? "") ?? [];
  const [given, expected] = [Buffer.from(signature), Buffer.from(sign(user ?? ""))];
  return given.length === expected.length && timingSafeEqual(given, expected) ? user : undefined;
}

const logins = loginMiddlewares<Request>({
  agent: (request) => {
    const user = userOf(request);
    return user === undefined ? undefined : clientOf(user);
  },
  redirectUri: `${ORIGIN}/oauth/callback`,
  servers: [MCP_URL],
  // The browser gets the code of an error only.
  onError: (error) => console.error(JSON.stringify(error)),
});

const app = express();
app.disable("x-powered-by");
app.get("/session/:user", (request, response) => {
  const { user = "" } = request.params;
  if (!/^[a-z]+$/.test(user)) return void response.status(404).send("no such user");
  response.setHeader("set-cookie", `session=${user}.${sign(user)}; Path=/; HttpOnly; SameSite=Lax`);
  response.redirect("/");
});
app.get("/oauth/start", logins.start);
app.get("/oauth/callback", logins.callback);
app.get("/", async (request, response) => {
  const user = userOf(request);
  if (user === undefined) return void response.status(401).send("Open /session/alice first.");
  const [login] = await clientOf(user).status(MCP_URL);
  const link = `/oauth/start?${new URLSearchParams({ server: MCP_URL, returnTo: "/" })}`;
  const state = login ? `${user} is connected.` : `${user} is not connected. <a href="${link}">Connect</a>`;
  response.type("html").send(`<!doctype html><title>Example</title><p id="state">${state}</p>`);
});
app.listen(Number(PORT), "127.0.0.1", () => console.log(`listening on port ${PORT}`));
