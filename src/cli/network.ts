import { readFileSync } from "node:fs";
import { AgentAuthError } from "../errors.js";
import { quote, type Redactor } from "../redact.js";
import type { Proxies } from "./proxy-failure.js";

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
  const read = (name: string) => options.env[name.toLowerCase()] ?? options.env[name];
  const proxies = readProxies(options.proxy, read, redactor);
  if (proxies.https === undefined && proxies.http === undefined && options.caFile === undefined) return undefined;
  const [{ createProxiedFetch }, { rootCertificates }] = await Promise.all([
    import("./proxied-fetch.js"),
    import("node:tls"),
  ]);
  const ca =
    options.caFile === undefined
      ? undefined
      : [...rootCertificates, ...extraAuthorities(options.env), readAuthorities(options.caFile)];
  return createProxiedFetch(proxies, { noProxy: read("NO_PROXY") ?? "", ca });
}

function readProxies(
  flag: string | undefined,
  read: (name: string) => string | undefined,
  redactor: Redactor,
): Proxies {
  const given = checkProxy(flag, "--proxy", redactor);
  return {
    https: given ?? checkProxy(read("HTTPS_PROXY"), "HTTPS_PROXY", redactor),
    http: given ?? checkProxy(read("HTTP_PROXY"), "HTTP_PROXY", redactor),
  };
}

function checkProxy(value: string | undefined, source: string, redactor: Redactor): string | undefined {
  if (value === undefined || value === "") return undefined;
  const withScheme = value.includes("://") ? value : `http://${value}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  for (const password of url?.password ? [url.password, decoded(url.password)] : []) redactor.add(password);
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new AgentAuthError(
      "usage",
      `${source} ${quote(redactor.redact(value))} is not an http:// or https:// address`,
      {
        class: "usage",
      },
    );
  }
  return url.href;
}

/** A password may have a "%" in it that encodes nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What Node trusts because of NODE_EXTRA_CA_CERTS: a list of one's own would otherwise take its place. */
function extraAuthorities(env: NetworkOptions["env"]): string[] {
  const path = env["NODE_EXTRA_CA_CERTS"];
  if (path === undefined) return [];
  try {
    return [readFileSync(path, "utf8")];
  } catch {
    // Node has warned about it at its start.
    return [];
  }
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
