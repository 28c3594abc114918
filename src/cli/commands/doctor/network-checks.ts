import { readFileSync } from "node:fs";
import { parseUrl, percentDecoded } from "../../../http/address.js";
import { networkError } from "../../../http/network-error.js";
import type { Env } from "../../../platform/system.js";
import { certificateFiles, readClientCertificate } from "../../../profile/certificate.js";
import { outletOf, systemAuthorities } from "../../../profile/network.js";
import { firstSet, type Settings, type Sourced } from "../../../profile/settings.js";
import { MASK, quote } from "../../../redact.js";
import { proxyChooser } from "../../../transport/proxies.js";
import { probeTls, type TlsProbe } from "../../../transport/tls-probe.js";
import { networkOptions } from "../../clients/network.js";
import type { CommandContext } from "../../runtime/context.js";
import { type CheckFinding, type DoctorFlags, failed, ok, skipped, warning } from "./check.js";

/** The proxies for requests, and the hosts that bypass them. */
export interface ProxySettings {
  https: Sourced | undefined;
  http: Sourced | undefined;
  /** `NO_PROXY`. */
  except: Sourced | undefined;
}

/** The proxies as they are set, with credentials. */
export function proxiesOf(flag: string | undefined, env: Env): ProxySettings {
  // The lower-case name takes precedence, as in other programs.
  const inEnv = (name: string) => firstSet([env[name.toLowerCase()], name.toLowerCase()], [env[name], name]);
  const given = firstSet([flag, "--proxy"]);
  const [https, http] = [inEnv("HTTPS_PROXY"), inEnv("HTTP_PROXY")];
  // Used only if neither of the others is set.
  const any = https || http ? undefined : inEnv("ALL_PROXY");
  return { https: given ?? https ?? any, http: given ?? http, except: inEnv("NO_PROXY") };
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

/** Whether the proxies are valid URLs. */
export function checkProxy({ https, http }: ProxySettings): CheckFinding {
  const set = [https, http].filter((proxy) => proxy !== undefined);
  const wrong = set.find(({ value }) => shownProxy(value) === undefined);
  if (wrong) return failed(`${wrong.source} is not an http:// or https:// URL`, `correct or unset ${wrong.source}`);
  const addresses = new Set(set.map(({ value, source }) => `${shownProxy(value)} (${source})`));
  return ok(addresses.size === 0 ? "none" : [...addresses].join(", "));
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 14;

/**
 * Whether the client certificate and its key can be used, and for how long.
 *
 * @param now milliseconds since the epoch
 * @throws `AgentAuthError` `usage` or `store_failed`
 */
export async function checkClientCertificate(
  settings: Pick<Settings, "clientCert" | "clientKey">,
  now: number,
  env: Env,
): Promise<CheckFinding> {
  const files = certificateFiles(settings);
  if (files === undefined) return ok("none");
  const { cert } = readClientCertificate(files, env);
  const { X509Certificate } = await import("node:crypto");
  const { subject, validTo } = new X509Certificate(cert);
  const days = Math.floor((Date.parse(validTo) - now) / DAY_MS);
  const certificate = `${quote(subject.replaceAll("\n", ", "))} in ${files.cert.value} (${files.cert.source})`;
  if (days < 0) return failed(`${certificate} expired on ${validTo}`, "get a new certificate");
  const finding = `${certificate}, valid until ${validTo}`;
  return days < SOON_DAYS ? warning(finding, "get a new certificate") : ok(finding);
}

/** Whether the files of certificate authorities can be read and contain certificates. */
export function checkAuthorities(caFile: string | undefined, systemCa: Sourced | undefined, env: Env): CheckFinding {
  const extra = env["NODE_EXTRA_CA_CERTS"];
  const problem = caFile === undefined ? undefined : fileProblem(caFile);
  if (problem !== undefined) return failed(`--ca-file ${quote(caFile)} ${problem}`, "give a PEM file");
  const extraProblem = extra === undefined ? undefined : fileProblem(extra);
  if (extraProblem !== undefined) {
    return warning(
      `NODE_EXTRA_CA_CERTS ${quote(extra)} ${extraProblem}: Node continues without it`,
      "correct or unset NODE_EXTRA_CA_CERTS",
    );
  }
  const files = [caFile === undefined ? "" : `${caFile} (--ca-file)`, extra ? `${extra} (NODE_EXTRA_CA_CERTS)` : ""];
  const system =
    systemCa?.value === "yes" ? `${systemAuthorities(systemCa.source).length} of the system (${systemCa.source})` : "";
  return ok(["Node's built-in list", ...[system, ...files].filter((one) => one !== "")].join(", "));
}

function fileProblem(path: string): string | undefined {
  try {
    if (readFileSync(path, "utf8").includes("-----BEGIN CERTIFICATE-----")) return undefined;
    return "contains no PEM certificate";
  } catch {
    return "cannot be read";
  }
}

/** The check of a server's certificate, whose issuer no failed request names; undefined for an address without TLS. */
export async function checkCertificate(
  address: string | undefined,
  flags: DoctorFlags,
  context: CommandContext,
): Promise<CheckFinding | undefined> {
  const url = parseUrl(address);
  if (url?.protocol !== "https:") return undefined;
  const outlet = outletOf(networkOptions(flags, context.settings(), context), context.redactor);
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
