import { AgentAuthError } from "../errors.js";

/**
 * Throws a failure of the proxy, or of the connection to it, as `proxy_failed` with the proxy's name; other errors unchanged.
 *
 * With a proxy, a refused connection and an unknown host name are those of the proxy, not of the service.
 */
export function explainProxyFailure(error: unknown, proxy: string, url: string): never {
  const reason = reasonOf(error, new URL(proxy));
  if (reason === undefined) throw error;
  const message = `${new URL(url).host}: the proxy ${new URL(proxy).host} ${reason}`;
  throw new AgentAuthError("proxy_failed", message, { class: "unavailable", cause: error });
}

function reasonOf(error: unknown, proxy: URL): string | undefined {
  for (let current = error, depth = 0; current instanceof Error && depth < 8; current = current.cause, depth++) {
    const status = /^Proxy response \((\d{3})\)/.exec(current.message)?.[1];
    if (status === "407") return "requires a user name and password, or rejected those given (HTTP 407)";
    if (status !== undefined) return `refused the connection (HTTP ${status})`;
    const { code, port, hostname } = current as { code?: unknown; port?: unknown; hostname?: unknown };
    const defaultPort = proxy.protocol === "https:" ? 443 : 80;
    const isProxy = hostname === proxy.hostname || port === Number(proxy.port || defaultPort);
    if (typeof code === "string" && isProxy) return `cannot be reached (${code})`;
  }
  return undefined;
}
