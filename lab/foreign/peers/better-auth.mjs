// better-auth with its MCP plugin: pages for login and consent, tokens as JWTs for the resource.
import { createServer } from "node:http";
import { listen, versionOf } from "../peer.mjs";
import { answerMcpRequest } from "../servers.mjs";

const USER = { email: "carol@peer.example", password: "a long password", name: "Carol" };

export const rows = [{ name: "better-auth", title: "better-auth with its MCP plugin", quick: true, start, browse }];

async function start() {
  const { betterAuth } = await import("better-auth");
  const { memoryAdapter } = await import("better-auth/adapters/memory");
  const { toNodeHandler } = await import("better-auth/node");
  const { jwt } = await import("better-auth/plugins");
  const { mcp, requireMcpAuth } = await import("@better-auth/mcp");
  const server = createServer((request, response) => handle(request, response));
  const origin = await listen(server);
  const url = `${origin}/mcp`;
  const tables = ["user", "session", "account", "verification", "jwks"];
  const oauth = [
    "oauthClient",
    "oauthAccessToken",
    "oauthRefreshToken",
    "oauthConsent",
    "oauthResource",
    "oauthClientResource",
  ];
  const auth = betterAuth({
    baseURL: origin,
    secret: "a secret of at least thirty-two characters",
    database: memoryAdapter(Object.fromEntries([...tables, ...oauth].map((table) => [table, []]))),
    emailAndPassword: { enabled: true },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    plugins: [
      jwt(),
      mcp({
        loginPage: "/login",
        consentPage: "/consent",
        resource: url,
        allowDynamicClientRegistration: true,
        allowUnauthenticatedClientRegistration: true,
      }),
    ],
  });
  await auth.api.signUpEmail({ body: USER });
  const answerMcp = requireMcpAuth(auth, (request, claims) => answerMcpRequest(request, claims.sub), { resource: url });
  const pages = async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/mcp") return answerMcp(request);
    return ["/login", "/consent"].includes(pathname) ? new Response(pathname) : auth.handler(request);
  };
  const handle = toNodeHandler(pages);
  return {
    url,
    version: versionOf("@better-auth/mcp"),
    tool: "whoami",
    says: "subject ",
    revoked: true,
    close: () => server.closeAllConnections() ?? server.close(),
  };
}

/** Logs in, and consents, as the forms of these pages do. */
async function browse(browser, address) {
  const { origin } = new URL(address);
  const submit = (page, path, body) =>
    browser.open(`${origin}/api/auth/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", origin },
      body: JSON.stringify({ ...body, oauth_query: page.url.search.slice(1) }),
    });
  const { email, password } = USER;
  const consent = await submit(await browser.open(address), "sign-in/email", { email, password });
  const { text } = await submit(consent, "oauth2/consent", { accept: true });
  await browser.open(JSON.parse(text).url);
}
