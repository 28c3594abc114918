import { AgentAuthError } from "../errors.js";

/**
 * Throws what went wrong on the way to or at the proxy as `proxy_failed`, naming the proxy; every other error as it is.
 *
 * With a proxy, the connection that is refused and the name that is not found are the proxy's, not the service's.
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
    if (status === "407") return "wants a user name and password, or others than were given (HTTP 407)";
    if (status !== undefined) return `refused the connection (HTTP ${status})`;
    const { code, port, hostname } = current as { code?: unknown; port?: unknown; hostname?: unknown };
    const defaultPort = proxy.protocol === "https:" ? 443 : 80;
    const isProxy = hostname === proxy.hostname || port === Number(proxy.port || defaultPort);
    if (typeof code === "string" && isProxy) return `cannot be reached (${code})`;
  }
  return undefined;
}
