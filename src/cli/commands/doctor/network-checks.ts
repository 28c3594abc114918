import { messageOf } from "../../../errors.js";
import { parseUrl, percentDecoded } from "../../../http/address.js";
import { networkError } from "../../../http/network-error.js";
import type { Env } from "../../../platform/system.js";
import {
  CA_FLAG,
  certificateFiles,
  outletOf,
  PROXY_FLAG,
  type ProxySettings,
  proxySettings,
  readAuthorities,
  readClientCertificate,
  systemAuthorities,
  withSource,
} from "../../../profile/connection-settings.js";
import { MASK, quote } from "../../../redact.js";
import { proxyChooser } from "../../../transport/proxies.js";
import { probeTls, type TlsProbe } from "../../../transport/tls-probe.js";
import { networkOptions } from "../../clients/network.js";
import { type CheckFinding, failed, ok, skipped, warning } from "./check.js";
import type { Checks, DoctorFlags, Subject } from "./subject.js";

const DAY_MS = 86_400_000;
const SOON_DAYS = 14;
const EXTRA = "NODE_EXTRA_CA_CERTS";

/** What requests leave through and trust, as it is set. */
export const NETWORK_CHECKS = {
  /** Node's switch that disables certificate checks. */
  tls({ env }) {
    if (env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return ok("certificates are verified");
    return failed(
      "NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates are not verified, and anyone on the network path can read every token",
      "unset NODE_TLS_REJECT_UNAUTHORIZED; trust your own certificate authority with --ca-file <file> or NODE_EXTRA_CA_CERTS",
    );
  },

  /** Whether the files of certificate authorities can be read and contain certificates. */
  authorities({ options: { caFile }, known, env }) {
    const { useSystemCa: system } = known.settings;
    const extra = env[EXTRA];
    const trusted = ["Node's built-in list"];
    if (system?.value === "yes")
      trusted.push(`${systemAuthorities(system.source).length} of the system (${system.source})`);
    if (caFile !== undefined) {
      readAuthorities({ value: caFile, source: CA_FLAG });
      trusted.push(`${caFile} (${CA_FLAG})`);
    }
    if (!extra) return ok(trusted.join(", "));
    try {
      readAuthorities({ value: extra, source: EXTRA });
    } catch (error) {
      return warning(`${messageOf(error)}: Node continues without it`, `correct or unset ${EXTRA}`);
    }
    return ok([...trusted, `${extra} (${EXTRA})`].join(", "));
  },

  /** Whether the client certificate and its key can be used, and for how long. */
  async client_cert({ known, env, context }) {
    const files = certificateFiles(known.settings);
    if (files === undefined) return ok("none");
    const { cert } = readClientCertificate(files, env);
    const { X509Certificate } = await import("node:crypto");
    const { subject, validTo } = new X509Certificate(cert);
    const days = Math.floor((Date.parse(validTo) - context.now()) / DAY_MS);
    const certificate = `${quote(subject.replaceAll("\n", ", "))} in ${files.cert.value} (${files.cert.source})`;
    if (days < 0) return failed(`${certificate} expired on ${validTo}`, "get a new certificate");
    const finding = `${certificate}, valid until ${validTo}`;
    return days < SOON_DAYS ? warning(finding, "get a new certificate") : ok(finding);
  },

  /** Whether the proxies are valid URLs. */
  proxy({ options, env }) {
    const { https, http } = proxiesOf(options, env);
    const set = [https, http].filter((proxy) => proxy !== undefined);
    const wrong = set.find(({ value }) => shownProxy(value) === undefined);
    if (wrong) return failed(`${wrong.source} is not an http:// or https:// URL`, `correct or unset ${wrong.source}`);
    const addresses = new Set(set.map(({ value, source }) => `${shownProxy(value)} (${source})`));
    return ok(addresses.size === 0 ? "none" : [...addresses].join(", "));
  },
} satisfies Checks;

/** The proxies as they are set, with credentials. */
export function proxiesOf({ proxy }: Pick<DoctorFlags, "proxy">, env: Env): ProxySettings {
  return proxySettings(withSource(proxy, PROXY_FLAG), env);
}

/** The URL of a proxy without credentials; undefined for an invalid URL, since any part may be the secret. */
export function shownProxy(value: string): string | undefined {
  const url = parse(value);
  if (url === undefined) return undefined;
  const credentials = url.username !== "" || url.password !== "" ? `${MASK}@` : "";
  return `${url.protocol}//${credentials}${url.host}`;
}

/** The secrets in the URL of a proxy: its password, as written and decoded; all of it if it is not a URL. */
export function proxySecrets(value: string): string[] {
  const url = parse(value);
  if (url === undefined) return [value];
  return url.password === "" ? [] : [url.password, percentDecoded(url.password)];
}

function parse(value: string): URL | undefined {
  const withScheme = value.includes("://") ? value : `http://${value}`;
  const url = parseUrl(withScheme);
  return url?.protocol === "http:" || url?.protocol === "https:" ? url : undefined;
}

/** The check of a server's certificate, whose issuer no failed request names; undefined for an address without TLS. */
export async function checkCertificate(
  address: string | undefined,
  { options, service: context }: Subject,
): Promise<CheckFinding | undefined> {
  const url = parseUrl(address);
  if (url?.protocol !== "https:") return undefined;
  const outlet = outletOf(networkOptions(options, context.settings(), context), context.redactor);
  const probe = await probeTls(url, { ...outlet, proxy: proxyChooser(outlet)(url) });
  if (probe === undefined) return skipped(`no TLS connection to ${url.host}`);
  const systemCode = probe.alert ?? probe.problem;
  if (systemCode === undefined) return ok(`${url.host}: issued by ${quote(probe.issuer)}, which is trusted`);
  throw networkError(undefined, url.href, { systemCode, description: describe(probe) });
}

function describe({ alert, whose, issuer, selfSigned, problem = "" }: TlsProbe): string {
  if (alert !== undefined) return "the server ended the TLS handshake, as one that requires a client certificate does";
  const certificate = whose === "proxy" ? "the proxy's certificate" : "the certificate";
  if (selfSigned) return `TLS failed: ${certificate} for ${quote(issuer)} is self-signed and not trusted`;
  const isUntrusted = /^(?:SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:GET_ISSUER|VERIFY)_?\w*)$/.test(problem);
  return `TLS failed: ${certificate} was issued by ${quote(issuer)}${isUntrusted ? ", which is not trusted" : ""}`;
}
