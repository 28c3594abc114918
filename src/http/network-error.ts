import { AgentAuthError, type ClientErrorCode, isAgentAuthError } from "../errors.js";
import { escapeText } from "../redact.js";
import { shownUrl } from "./reply.js";

const KINDS: readonly [RegExp, ClientErrorCode][] = [
  [/^(ENOTFOUND|EAI_[A-Z]+|ENODATA|ESERVFAIL)$/, "dns_failed"],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|EADDRNOTAVAIL)$/, "connection_refused"],
  [/^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/, "timeout"],
  [/^UND_ERR_PRX/, "proxy_failed"],
  [/^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|HPE_.*)$/, "connection_reset"],
  [
    /CERT|^(ERR_TLS|ERR_SSL|EPROTO$|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|HOSTNAME_MISMATCH)/,
    "tls_failed",
  ],
];

const SAYS: Readonly<Partial<Record<ClientErrorCode, string>>> = {
  dns_failed: "the host name could not be resolved",
  connection_refused: "the connection was refused",
  timeout: "no answer in time",
  proxy_failed: "the proxy did not let the request through",
  connection_reset: "the connection broke before the whole answer was there",
  tls_failed: "TLS failed",
  network_failed: "the request could not be made",
};

const HINTS: Readonly<Partial<Record<ClientErrorCode, string>>> = {
  dns_failed: "check the host name in the base URL, and the network",
  connection_refused: "check that the service runs at this address and port",
  tls_failed: "a certificate of your own authority is trusted through NODE_EXTRA_CA_CERTS",
};

/**
 * The typed error for what `fetch` or a body threw: `dns_failed`, `connection_refused`, `connection_reset`,
 * `tls_failed`, `timeout`, `proxy_failed` or `network_failed`, found by the system's code somewhere in the causes.
 */
export function networkError(thrown: unknown, url: string): AgentAuthError {
  if (isAgentAuthError(thrown)) return thrown;
  const { code: systemCode, message: detail } = deepestCause(thrown);
  const code = KINDS.find(([shape]) => shape.test(systemCode))?.[1] ?? "network_failed";
  const host = URL.canParse(url) ? new URL(url).host : "";
  const reason = [systemCode, detail].filter(Boolean).join(": ");
  const hint = HINTS[code];
  return new AgentAuthError(code, `${host}: ${SAYS[code]}${reason ? ` (${escapeText(reason).slice(0, 200)})` : ""}`, {
    class: "unavailable",
    // A certificate does not get better by asking again, and neither does a name that does not exist.
    retryable: code !== "tls_failed" && systemCode !== "ENOTFOUND",
    url: shownUrl(url),
    hint,
    cause: thrown,
  });
}

/** fetch says "fetch failed" and hides why in causes, some of them several errors in one. */
function deepestCause(thrown: unknown): { code: string; message: string } {
  let code = "";
  let message = "";
  let current: unknown = thrown;
  for (let depth = 0; depth < 8 && current instanceof Error; depth++) {
    const own = (current as { code?: unknown }).code;
    if (typeof own === "string") {
      code = own;
      message = current.message;
    } else if (code === "") {
      message = current.message;
    }
    const several = (current as { errors?: unknown }).errors;
    current = Array.isArray(several) && several.length > 0 ? several[0] : current.cause;
  }
  return { code, message };
}
