import { AgentAuthError } from "../errors.js";

/** The failure of a proxy, or of the connection to it. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
  /** What it answered in place of a tunnel. */
  readonly status: number | undefined;

  constructor(cause: Error | undefined, status?: number) {
    super(cause?.message ?? `HTTP ${status}`, cause && { cause });
    this.status = status;
  }
}

/**
 * The failure of a proxy as `proxy_failed` with the proxy's name; undefined for a failure of TLS, which is explained as that
 * of a server.
 *
 * With a proxy, a refused connection and an unknown host name are those of the proxy, not of the service.
 */
export function explainProxyFailure(error: ProxyError, proxy: string, url: URL): AgentAuthError | undefined {
  const reason = reasonOf(error);
  if (reason === undefined) return undefined;
  const message = `${url.host}: the proxy ${new URL(proxy).host} ${reason}`;
  return new AgentAuthError("proxy_failed", message, { class: "unavailable", cause: error });
}

function reasonOf({ status, cause }: ProxyError): string | undefined {
  if (status === 407) return "requires a user name and password, or rejected those given (HTTP 407)";
  if (status !== undefined) return `refused the connection (HTTP ${status})`;
  const { code } = cause as { code?: unknown };
  if (typeof code !== "string") return "cannot be reached";
  return /^E(?!PROTO|RR_)/.test(code) ? `cannot be reached (${code})` : undefined;
}
