import type { ClientErrorCode } from "../error-codes.js";
import { type Advice, AgentAuthError, isAgentAuthError, orUndefined } from "../errors.js";
import { escapeText } from "../redact.js";
import type { ConfigureOption, Remedy } from "../remedy.js";
import { parseUrl, shownUrl } from "./address.js";

const KINDS: readonly [RegExp, ClientErrorCode][] = [
  [/^(ENOTFOUND|EAI_[A-Z]+|ENODATA|ESERVFAIL)$/, "dns_failed"],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|EADDRNOTAVAIL)$/, "connection_refused"],
  [/^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/, "timeout"],
  [/^UND_ERR_PRX/, "proxy_failed"],
  [
    /^(ECONNRESET|EPIPE|ECONNABORTED|ERR_STREAM_PREMATURE_CLOSE|UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|HPE_.*|HTTPParserError)$/,
    "connection_reset",
  ],
  [
    /CERT|^(ERR_TLS|ERR_SSL|EPROTO$|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|HOSTNAME_MISMATCH)/,
    "tls_failed",
  ],
];

/** The message of `fetch` for ports that browsers block, such as that of mail. */
const BAD_PORT = "bad port";

const DESCRIPTIONS: Readonly<Partial<Record<ClientErrorCode, string>>> = {
  dns_failed: "the host name could not be resolved",
  connection_refused: "the connection was refused",
  timeout: "no response in time",
  proxy_failed: "the proxy did not let the request through",
  connection_reset: "the connection broke before the response was complete",
  tls_failed: "TLS failed",
  network_failed: "the request could not be sent",
};

const HINTS: Readonly<Partial<Record<ClientErrorCode, string>>> = {
  dns_failed: "check the host name and the network",
  connection_refused: "check that the service runs at this address and port",
};

/** The hint depends on the TLS failure; only an unknown authority is helped by naming one. */
const TLS_HINTS: readonly [RegExp, string, ConfigureOption?][] = [
  [/ALERT/, "use a client certificate that the server accepts", "clientCertificate"],
  [/HAS_EXPIRED|NOT_YET_VALID/, "check this machine's clock; if it is right, the server's certificate must be renewed"],
  [/ALTNAME|HOSTNAME_MISMATCH/, "check the host name in the address: the certificate is for another one"],
  [/WRONG_VERSION_NUMBER|PACKET_LENGTH|HTTP_REQUEST/, "check the port: the server speaks no TLS there"],
  [
    /SELF_SIGNED|UNABLE_TO|UNTRUSTED|INVALID_CA/,
    "a certificate of your own authority is trusted through NODE_EXTRA_CA_CERTS",
    "ca",
  ],
];

/**
 * The typed error for what `fetch` or a body threw: `dns_failed`, `connection_refused`, `connection_reset`,
 * `tls_failed`, `timeout`, `proxy_failed` or `network_failed`, found by the system's code somewhere in the causes.
 */
export function networkError(thrown: unknown, url: string): AgentAuthError {
  if (isAgentAuthError(thrown)) return thrown;
  const { code: systemCode, message } = deepestCause(thrown);
  const code = KINDS.find(([shape]) => shape.test(systemCode))?.[1] ?? "network_failed";
  const host = parseUrl(url)?.host ?? "";
  const reason = [systemCode, withoutOpensslFrame(message)].filter(Boolean).join(": ");
  const isBadPort = message === BAD_PORT;
  const shown = reason && ` (${escapeText(reason).slice(0, 200)})`;
  return new AgentAuthError(code, `${host}: ${DESCRIPTIONS[code]}${shown}`, {
    class: "unavailable",
    // A retry repairs neither a certificate nor a name that does not exist.
    retryable: code !== "tls_failed" && systemCode !== "ENOTFOUND" && !isBadPort,
    url: shownUrl(url),
    ...(isBadPort ? { hint: BAD_PORT_HINT } : adviceFor(code, systemCode)),
    cause: thrown,
  });
}

const BAD_PORT_HINT = "use another port: fetch refuses those of other protocols";

function adviceFor(code: ClientErrorCode, systemCode: string): Advice {
  if (code !== "tls_failed") return { hint: HINTS[code] };
  const [, hint, option] = TLS_HINTS.find(([shape]) => shape.test(systemCode)) ?? [];
  return { hint, remedy: option && { action: "configure", option } };
}

/** The reason without the thread, source file and line that OpenSSL puts around it. */
function withoutOpensslFrame(message: string): string {
  return /^[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/.exec(message)?.[1] ?? message;
}

/** The error of `fetch` for an answer that is not HTTP; since Node 24 it has no code. */
const NOT_HTTP = "HTTPParserError";

/** fetch throws "fetch failed" with the reason in its causes, some of which hold several errors. */
function deepestCause(thrown: unknown): { code: string; message: string } {
  let code = "";
  let message = "";
  let current: unknown = thrown;
  for (let depth = 0; depth < 8 && current instanceof Error; depth++) {
    const own = (current as { code?: unknown }).code ?? (current.name === NOT_HTTP ? NOT_HTTP : undefined);
    if (typeof own === "string") {
      code = own;
      message = current.message;
    } else if (code === "") {
      message = current.message;
    }
    const errors = (current as { errors?: unknown }).errors;
    current = Array.isArray(errors) && errors.length > 0 ? errors[0] : current.cause;
  }
  return { code, message };
}

type Mask = (text: string) => string;

const MAX_DEPTH = 8;

/**
 * The error with every secret masked that a `fetch` or a peer put into its message, its causes included; the same error
 * where there is none.
 */
export function maskError(error: AgentAuthError, mask: Mask): AgentAuthError {
  const cause = maskThrown(error.cause, mask, 0);
  const { code, message, hint, remedy, requestId, url, response } = error;
  const texts = [code, message, hint ?? "", url ?? "", requestId ?? "", ...Object.values(remedy ?? {}).map(String)];
  if (cause === error.cause && texts.every((text) => isClean(text, mask))) return error;
  return new AgentAuthError(mask(code), mask(message), {
    ...error,
    response,
    cause,
    hint: hint && mask(hint),
    remedy: remedy && maskRemedy(remedy, mask),
    url: url && mask(url),
    requestId: requestId && mask(requestId),
  });
}

function maskRemedy(remedy: Remedy, mask: Mask): Remedy {
  const masked = Object.entries(remedy).map(([name, value]) => [name, typeof value === "string" ? mask(value) : value]);
  return Object.fromEntries(masked) as Remedy;
}

/** The same value where it holds no secret: a copy lacks properties that a debugger may need. */
function maskThrown(thrown: unknown, mask: Mask, depth: number): unknown {
  if (typeof thrown === "string") return mask(thrown);
  if (depth === MAX_DEPTH) return thrown;
  if (!(thrown instanceof Error)) return isClean(readText(thrown), mask) ? thrown : undefined;
  const { message, stack = "" } = thrown;
  const cause = maskThrown(thrown.cause, mask, depth + 1);
  const { code, errors } = thrown as { code?: unknown; errors?: unknown };
  const several: readonly unknown[] = Array.isArray(errors) ? errors : [];
  const isWhole = cause === thrown.cause && several.every((one) => maskThrown(one, mask, depth + 1) === one);
  if (isWhole && isClean(`${stack}\n${message}\n${readText(thrown)}`, mask)) return thrown;
  const copy = new Error(mask(message), cause === undefined ? undefined : { cause });
  copy.name = mask(thrown.name);
  copy.stack = mask(stack);
  return typeof code === "string" ? Object.assign(copy, { code: mask(code) }) : copy;
}

function isClean(text: string, mask: Mask): boolean {
  return mask(text) === text;
}

/** Its own properties as text. */
function readText(value: unknown): string {
  return orUndefined(() => JSON.stringify(value)) ?? "";
}
