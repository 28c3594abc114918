import { networkError } from "../../../http/network-error.js";
import { parseUrl } from "../../../http/url.js";
import { outletOf } from "../../../profile/network.js";
import { quote } from "../../../redact.js";
import { proxyChooser } from "../../../transport/proxies.js";
import { probeTls, type TlsProbe } from "../../../transport/tls-probe.js";
import { networkOptions } from "../../clients/network.js";
import type { CommandContext } from "../../runtime/context.js";
import { type Check, type Finding, ok, skipped } from "./check.js";
import type { DoctorFlags } from "./options.js";

/** The check of a server's certificate, whose issuer no failed request names; none for an address without TLS. */
export function certificateChecks(
  name: string,
  address: string | undefined,
  flags: DoctorFlags,
  context: CommandContext,
): Check[] {
  const url = parseUrl(address);
  return url?.protocol === "https:" ? [{ name, area: "online", run: () => checkCertificate(url, flags, context) }] : [];
}

async function checkCertificate(url: URL, flags: DoctorFlags, context: CommandContext): Promise<Finding> {
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
