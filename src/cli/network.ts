import { readFileSync } from "node:fs";
import { AgentAuthError } from "../errors.js";
import { quote, type Redactor } from "../redact.js";

/** What decides how requests leave this machine. */
export interface NetworkOptions {
  /** `--proxy`: used for every host that `NO_PROXY` does not name. */
  proxy: string | undefined;
  /** `--ca-file`: certificates of authorities to trust beside the usual ones, PEM. */
  caFile: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
}

type Fetch = typeof globalThis.fetch;

/**
 * The `fetch` for a proxy or an authority of one's own; undefined where neither is asked for, so that the library that
 * does it is not even loaded. Nothing global is changed.
 *
 * @throws `AgentAuthError` `usage`
 */
export async function networkFetch(options: NetworkOptions, redactor: Redactor): Promise<Fetch | undefined> {
  const { env } = options;
  const read = (name: string) => env[name.toLowerCase()] ?? env[name];
  const httpsProxy = checkProxy(options.proxy, "--proxy", redactor) ?? checkProxy(read("HTTPS_PROXY"), "HTTPS_PROXY", redactor);
  const httpProxy = checkProxy(options.proxy, "--proxy", redactor) ?? checkProxy(read("HTTP_PROXY"), "HTTP_PROXY", redactor);
  if (httpsProxy === undefined && httpProxy === undefined && options.caFile === undefined) return undefined;
  const [{ EnvHttpProxyAgent, fetch }, { rootCertificates }] = await Promise.all([import("undici"), import("node:tls")]);
  const tls = options.caFile === undefined ? {} : { ca: [...rootCertificates, readAuthorities(options.caFile)] };
  const dispatcher = new EnvHttpProxyAgent({
    httpsProxy: httpsProxy ?? "",
    httpProxy: httpProxy ?? "",
    // A service on this machine is never reached through another.
    noProxy: ["localhost", "127.0.0.1", "[::1]", "::1", read("NO_PROXY")].filter(Boolean).join(","),
    connect: tls,
    requestTls: tls,
    proxyTls: tls,
  });
  // Agent and fetch must come from the same copy: Node's own fetch does not understand another version's agent.
  return ((input: Request, init?: RequestInit) =>
    fetch(input.url, {
      method: input.method,
      headers: [...input.headers],
      body: input.body,
      ...(input.body && { duplex: "half" }),
      ...init,
      dispatcher,
    } as Parameters<typeof fetch>[1])) as unknown as Fetch;
}

function checkProxy(value: string | undefined, source: string, redactor: Redactor): string | undefined {
  if (value === undefined || value === "") return undefined;
  const withScheme = value.includes("://") ? value : `http://${value}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url?.password) redactor.add(decodeURIComponent(url.password));
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new AgentAuthError("usage", `${source} ${quote(redactor.redact(value))} is not an http:// or https:// address`, {
      class: "usage",
    });
  }
  return url.href;
}

function readAuthorities(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new AgentAuthError("usage", `--ca-file ${quote(path)} cannot be read`, { class: "usage", cause });
  }
  if (!text.includes("-----BEGIN CERTIFICATE-----")) {
    throw new AgentAuthError("usage", `--ca-file ${quote(path)} holds no PEM certificate`, { class: "usage" });
  }
  return text;
}
