import type { IncomingMessage, ServerResponse } from "node:http";
import type { Interaction, InteractionResults, OidcProvider } from "#packages/oidc-provider";
import { splitScope } from "../../oauth/model/scope.js";
import type { SandboxResponse } from "../http/requests.js";
import { STATIC_SCOPES } from "./configuration.js";
import { consentPage, errorPage, loginPage, pageHeaders, readHiddenForm } from "./issuer-pages.js";
import { findUser, USERS } from "./issuer-settings.js";
import { readParam } from "./oidc.js";
import type { ForwardedRequest, RunningServer } from "./pool-server.js";

/** The login and consent pages of an authorization request. */
export async function handleInteraction(
  provider: OidcProvider,
  request: IncomingMessage,
  response: ServerResponse,
  form: URLSearchParams,
): Promise<void> {
  let interaction: Interaction;
  try {
    interaction = await provider.interactionDetails(request, response);
  } catch {
    const text = "This page has expired, or it was opened in another browser. Start again at the client.";
    return sendPage(response, 400, errorPage({ error: "invalid_request", error_description: text }));
  }
  if (request.method !== "POST") return sendPage(response, 200, ...(await renderPage(provider, interaction)));
  const result = await buildResult(provider, interaction, form);
  if (result) return provider.interactionFinished(request, response, result);
  const error = { error: "invalid_request", error_description: "The form is incomplete." };
  return sendPage(response, 400, errorPage(error));
}

async function grantAll(provider: OidcProvider, interaction: Interaction, accountId: string): Promise<string> {
  const { params, grantId } = interaction;
  const existing = grantId === undefined ? undefined : await provider.Grant.find(grantId);
  const grant = existing ?? new provider.Grant({ accountId, clientId: readParam(params, "client_id") ?? "" });
  const scopes = readScopes(params);
  const isStatic = (scope: string) => (STATIC_SCOPES as readonly string[]).includes(scope);
  const [statics, others] = [scopes.filter(isStatic), scopes.filter((scope) => !isStatic(scope))];
  if (statics.length > 0) grant.addOIDCScope(statics.join(" "));
  for (const resource of readResources(params))
    if (others.length > 0) grant.addResourceScope(resource, others.join(" "));
  return grant.save();
}

async function renderPage(
  provider: OidcProvider,
  { params, prompt, session }: Interaction,
): Promise<[string, string | undefined]> {
  const clientId = readParam(params, "client_id") ?? "";
  const client = await provider.Client.find(clientId);
  const redirectUri = readParam(params, "redirect_uri");
  const request = {
    clientName: client?.clientName ?? clientId,
    redirectUri,
    resource: readResources(params)[0],
    scopes: readScopes(params),
  };
  if (prompt.name === "login") return [loginPage(USERS, request), redirectUri];
  const user = findUser(session?.accountId ?? "");
  return [consentPage(user?.name ?? "", request), redirectUri];
}

async function buildResult(
  provider: OidcProvider,
  interaction: Interaction,
  form: URLSearchParams,
): Promise<InteractionResults | undefined> {
  const decision = form.get("decision");
  if (decision === "deny") return { error: "access_denied", error_description: "the user denied the request" };
  if (interaction.prompt.name === "login") {
    const user = findUser(form.get("account") ?? "");
    return user && { login: { accountId: user.id } };
  }
  const accountId = interaction.session?.accountId;
  if (decision !== "allow" || accountId === undefined) return undefined;
  return { consent: { grantId: await grantAll(provider, interaction, accountId) } };
}

function sendPage(response: ServerResponse, status: number, page: string, redirectUri?: string): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(pageHeaders(redirectUri))) response.setHeader(name, value);
  response.end(page);
}

function readScopes(params: Interaction["params"]): string[] {
  return splitScope(readParam(params, "scope"));
}

function readResources({ resource }: Interaction["params"]): string[] {
  return [resource].flat().filter((one) => typeof one === "string");
}

const MAX_STEPS = 8;

/**
 * Answers a request of a browser and takes the steps that need no user: it posts forms that would submit themselves by
 * script, since the pages run no scripts, and with an account it completes the login and consent pages too. The browser
 * receives the last response.
 *
 * @param account the account that is logged in automatically; `undefined` shows the pages to the user
 */
export async function autoConsent(
  running: RunningServer,
  issuer: URL,
  account: string | undefined,
  request: ForwardedRequest,
): Promise<SandboxResponse> {
  const cookies = new Map<string | undefined, string>();
  const cookiesSet: string[] = [];
  // Automatic login starts without cookies each time: an earlier login must not matter.
  const sent = account === undefined ? (request.headers["cookie"] ?? "") : "";
  for (const pair of sent.split(/; */).filter(Boolean)) cookies.set(pair.split("=")[0], pair);
  const go = async (next: ForwardedRequest) => {
    const cookie = [...cookies.values()].join("; ");
    const answer = await running.answer({ ...next, headers: { ...next.headers, cookie } });
    for (const line of [answer.headers["set-cookie"] ?? []].flat()) {
      const [pair = ""] = line.split(";");
      const [name] = pair.split("=");
      // A server removes a cookie by setting it to an empty value.
      if (pair === `${name}=`) cookies.delete(name);
      else cookies.set(name, pair);
      cookiesSet.push(line);
    }
    return answer;
  };
  let answer = await go(request);
  for (let step = 0; step < MAX_STEPS; step++) {
    const next = formToPost(answer, account !== undefined) ?? (await approveInteraction(running, answer, account));
    if (!next) break;
    const { method = "GET", body = "" } = next;
    const target = new URL(next.target, issuer);
    // A form can also lead to a client: then the browser posts it.
    if (target.origin !== issuer.origin || !target.pathname.startsWith(`${issuer.pathname}/`)) break;
    const headers = { ...request.headers, "content-type": "application/x-www-form-urlencoded" };
    const url = target.pathname.slice(issuer.pathname.length) + target.search;
    answer = await go({ method, url, headers, body: Buffer.from(body) });
  }
  const { "set-cookie": _, ...headers } = answer.headers;
  const isBrowser = account === undefined && cookiesSet.length > 0;
  return { ...answer, headers: { ...headers, ...(isBrowser && { "set-cookie": cookiesSet }) } };
}

type Step = Partial<Record<"method" | "body", string>> & { target: string };

/** The form of a page that would submit itself, or, with automatic login, that only asks for confirmation. */
function formToPost({ headers, body }: SandboxResponse, confirms: boolean): Step | undefined {
  if (!String(headers["content-type"]).startsWith("text/html")) return undefined;
  const page = body.toString();
  const form = readHiddenForm(page);
  if (!form) return undefined;
  if (!page.includes("document.forms[0].submit()") && !(confirms && form.fields["confirm"] === "yes")) return undefined;
  return { target: form.action, method: "POST", body: new URLSearchParams(form.fields).toString() };
}

/** Logs an account in where a page would ask for it, and grants all scopes. */
async function approveInteraction(
  { provider }: RunningServer,
  { headers }: SandboxResponse,
  account?: string,
): Promise<Step | undefined> {
  if (account === undefined) return undefined;
  const uid = /^\/[^/?]+\/interaction\/([\w-]+)$/.exec(String(headers["location"]))?.[1];
  const interaction = uid === undefined ? undefined : await provider.Interaction.find(uid);
  if (!interaction) return undefined;
  const grantId = await grantAll(provider, interaction, account);
  interaction.result = { login: { accountId: account }, consent: { grantId } };
  await interaction.save(interaction.exp - Math.floor(Date.now() / 1000));
  return { target: interaction.returnTo };
}
