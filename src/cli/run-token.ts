import type { AccessToken } from "../oauth/access-token.js";
import { escapeText } from "../redact.js";
import { agentOf } from "./agent-context.js";
import type { TokenFlags } from "./commands/agent.js";
import type { Deps } from "./context.js";
import { mcpAddress } from "./mcp-address.js";
import { beginLogin, finishLogin } from "./two-step-login.js";

/** `token`: prints the token and nothing else; nothing at all when there is none. */
export async function runToken(options: TokenFlags, deps: Deps): Promise<undefined> {
  const url = mcpAddress(options.url);
  const agent = await agentOf(options, deps, "when-present");
  const { scope, minTtl, forceRefresh } = options;
  const token = await agent.token(url, { scope, minTtl, forceRefresh, signal: deps.signal });
  await deps.io.stdout.write(FORMATS[options.format ?? "raw"](token, deps.now()));
  return undefined;
}

/** `login`: signs in, whatever is stored; in one step, or in two. */
export async function runLogin(options: TokenFlags, deps: Deps): Promise<undefined> {
  const url = mcpAddress(options.url);
  if (options.wait === false) return beginLogin(url, options, deps);
  const agent = await agentOf(options, deps, "always");
  const token =
    typeof options.wait === "string"
      ? await finishLogin(agent, url, options.wait, options, deps)
      : await agent.login(url, { scope: options.scope, signal: deps.signal });
  const until = token.expiresAt === undefined ? "" : `, the token ends ${token.expiresAt.toISOString()}`;
  const [login] = await agent.status(url);
  const renewal = login?.refreshable ? "" : "; there is no refresh token, so it cannot be renewed";
  if (options.json || options.output === "json") await deps.io.stdout.write(json({ signed_in: true, ...login }));
  deps.io.say(`signed in at ${escapeText(token.server)} (issuer ${escapeText(token.issuer)})${until}${renewal}`);
  return undefined;
}

type Format = (token: AccessToken, now: number) => string;

const json = (value: unknown) => `${JSON.stringify(value)}\n`;

/** How a token is handed to whoever asked; each ends its output with a line break. */
const FORMATS: Readonly<Record<NonNullable<TokenFlags["format"]>, Format>> = {
  raw: ({ value }) => `${value}\n`,
  header: ({ value }) => `Authorization: Bearer ${value}\n`,
  "headers-json": ({ value }) => json({ Authorization: `Bearer ${value}` }),
  json: (token, now) =>
    json({
      access_token: token.value,
      token_type: "Bearer",
      expires_at: token.expiresAt?.toISOString() ?? null,
      expires_in:
        token.expiresAt === undefined ? null : Math.max(0, Math.floor((token.expiresAt.getTime() - now) / 1000)),
      scope: token.scope ?? null,
      resource: token.resource,
      issuer: token.issuer,
    }),
  env: ({ value }) => `AGENTAUTH_TOKEN=${value}\n`,
  k8s: ({ value, expiresAt }) =>
    json({
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: {
        token: value,
        ...(expiresAt && { expirationTimestamp: expiresAt.toISOString().replace(/\.\d+Z$/, "Z") }),
      },
    }),
  git: ({ value, expiresAt }) =>
    [
      "capability[]=authtype",
      "authtype=Bearer",
      `credential=${value}`,
      ...(expiresAt ? [`password_expiry_utc=${Math.floor(expiresAt.getTime() / 1000)}`] : []),
      "",
    ].join("\n"),
  bazel: ({ value, expiresAt }) =>
    json({
      headers: { Authorization: [`Bearer ${value}`] },
      ...(expiresAt && { expires: expiresAt.toISOString().replace(/\.\d+Z$/, "Z") }),
    }),
};
