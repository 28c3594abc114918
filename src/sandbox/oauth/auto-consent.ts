import type { Answer } from "../http/round-trip.js";
import { readHiddenForm } from "./forms.js";
import type { InnerRequest } from "./in-process-request.js";
import { grantAll } from "./interaction.js";
import type { Running } from "./pool-server.js";

type Request = Omit<InnerRequest, "originalUrl">;

/** How a request is helped on its way. */
export interface AutoConsentSettings {
  running: Running;
  /** The issuer, below which all of the server's addresses are. */
  issuer: URL;
  /** Who is signed in at every page, without being asked; `undefined` leaves the pages to a person. */
  account: string | undefined;
}

const MAX_STEPS = 8;

/**
 * Answers a request of somebody's browser, and goes the steps that need nobody: forms that would only post themselves,
 * since the pages run no scripts, and for an account that signs in by itself the pages too. What the browser gets is
 * the end of them.
 */
export async function autoConsent(
  { running, issuer, account }: AutoConsentSettings,
  request: Request,
): Promise<Answer> {
  // Signing in by itself starts afresh each time: it must not depend on who was there before.
  const cookies = new Cookies(account === undefined ? request.headers["cookie"] : undefined);
  const go = async (next: Request) => {
    const answer = await running.answer({ ...next, headers: { ...next.headers, cookie: cookies.header } });
    cookies.take(answer);
    return answer;
  };
  let answer = await go(request);
  for (let step = 0; step < MAX_STEPS; step++) {
    const next = formToPost(answer, account !== undefined) ?? (await approve(running, answer, account));
    if (!next) break;
    const { method = "GET", body = "" } = next;
    const target = new URL(next.target, issuer);
    // A form can also be a client's: then it is for the browser to post.
    if (target.origin !== issuer.origin || !target.pathname.startsWith(`${issuer.pathname}/`)) break;
    const headers = { ...request.headers, "content-type": "application/x-www-form-urlencoded" };
    const url = target.pathname.slice(issuer.pathname.length) + target.search;
    answer = await go({ method, url, headers, body: Buffer.from(body), due: request.due });
  }
  const { "set-cookie": _, ...headers } = answer.headers;
  if (account !== undefined) return { ...answer, headers };
  return { ...answer, headers: { ...headers, ...cookies.toSet } };
}

interface Step {
  target: string;
  method?: string;
  body?: string;
}

/** The form of a page that would post itself, or that only confirms what an account which needs no asking has asked. */
function formToPost({ headers, body }: Answer, confirms: boolean): Step | undefined {
  if (!String(headers["content-type"]).startsWith("text/html")) return undefined;
  const page = body.toString();
  const form = readHiddenForm(page);
  if (!form) return undefined;
  if (!page.includes("document.forms[0].submit()") && !(confirms && form.fields["confirm"] === "yes")) return undefined;
  return { target: form.action, method: "POST", body: new URLSearchParams(form.fields).toString() };
}

/** Signs an account in where a page would ask for it, and allows all. */
async function approve({ provider }: Running, { headers }: Answer, account?: string): Promise<Step | undefined> {
  if (account === undefined) return undefined;
  const uid = /^\/[^/?]+\/interaction\/([\w-]+)$/.exec(String(headers["location"]))?.[1];
  const interaction = uid === undefined ? undefined : await provider.Interaction.find(uid);
  if (!interaction) return undefined;
  const grantId = await grantAll(provider, interaction, account);
  interaction.result = { login: { accountId: account }, consent: { grantId } };
  await interaction.save(interaction.exp - Math.floor(Date.now() / 1000));
  return { target: interaction.returnTo };
}

/** The cookies of one browser at one server. */
class Cookies {
  readonly #values = new Map<string, string>();
  readonly #set = new Map<string, string>();

  constructor(header = "") {
    for (const pair of header.split(/; */)) this.#keep(pair);
  }

  get header(): string {
    return [...this.#values].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  /** The header by which the browser learns of all that was set on the way. */
  get toSet(): { "set-cookie"?: string[] } {
    return this.#set.size === 0 ? {} : { "set-cookie": [...this.#set.values()] };
  }

  take({ headers }: Answer): void {
    for (const line of [headers["set-cookie"] ?? []].flat()) {
      this.#keep(line.slice(0, line.indexOf(";")));
      this.#set.set(`${line.slice(0, line.indexOf("="))} ${/; *path=([^;]*)/i.exec(line)?.[1]}`, line);
    }
  }

  #keep(pair: string): void {
    const at = pair.indexOf("=");
    if (at <= 0) return;
    // A cookie that is taken away is set to nothing.
    if (at === pair.length - 1) this.#values.delete(pair.slice(0, at));
    else this.#values.set(pair.slice(0, at), pair.slice(at + 1));
  }
}
