import { parseUrl } from "../http/address.js";
import { DOCUMENT_PORTS } from "../oauth/client/metadata-document.js";

/** How a host of this machine is spelled in a redirect address; authorization servers compare it letter by letter. */
export type RedirectHost = "127.0.0.1" | "localhost";

/** What the user or the program requires of the redirect address. */
export interface RedirectOptions {
  /** Default `127.0.0.1` (RFC 8252 section 8.3). */
  host?: RedirectHost | undefined;
  /** A required port, 1 to 65535. Default: any free one. */
  port?: number | undefined;
  /** Default `/callback`. */
  path?: string | undefined;
  /** The redirect address of an earlier registration. */
  preferred?: string | undefined;
}

/** The shape of the redirect address, and the ports to try, in order; 0 lets the system choose. */
export interface RedirectPlan {
  host: RedirectHost;
  path: string;
  ports: readonly number[];
}

const DEFAULT_PATH = "/callback";
const PLAIN_PATH = /^\/(?:[\w\-.~]+(?:\/[\w\-.~]+)*\/?)?$/;

/**
 * Chooses a redirect address. An earlier one is reused where it meets the options; only a port given in the options
 * is required.
 *
 * @throws `TypeError` for a port or path that cannot be one
 */
export function planRedirect(options: RedirectOptions): RedirectPlan {
  const { host, port, path } = options;
  if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= 65_535)) {
    throw new TypeError("the redirect port must be a whole number from 1 to 65535");
  }
  if (path !== undefined && !isPlainPath(path)) throw new TypeError(`the redirect path ${REDIRECT_PATH_RULE}`);
  const earlier = readRedirect(options.preferred);
  // Our metadata document has the same ports for both hosts, in the order in which to try them.
  const isOfDocument = earlier?.path === DEFAULT_PATH && DOCUMENT_PORTS.includes(earlier.port);
  const isReusable =
    earlier !== undefined &&
    (isOfDocument || (host ?? earlier.host) === earlier.host) &&
    (path ?? earlier.path) === earlier.path &&
    (port ?? earlier.port) === earlier.port;
  const shape = isReusable
    ? { ...earlier, ...(host && { host }) }
    : { host: host ?? "127.0.0.1", path: path ?? DEFAULT_PATH };
  const ports =
    port !== undefined
      ? [port]
      : isReusable
        ? [...new Set([earlier.port, ...(isOfDocument ? DOCUMENT_PORTS : [])]), 0]
        : [0];
  return { host: shape.host, path: shape.path, ports };
}

export function redirectUri({ host, path }: Pick<RedirectPlan, "host" | "path">, port: number): string {
  return `http://${authorityOf(host, port)}${path}`;
}

/** Host and port as browsers send them. */
export function authorityOf(host: string, port: number): string {
  return port === 80 ? host : `${host}:${port}`;
}

/** What {@link isPlainPath} requires. */
export const REDIRECT_PATH_RULE = "must begin with / and have only letters, digits and -._~/ in it";

/** `.` and `..` as segments are resolved by browsers, so that the callback would come to another path. */
export function isPlainPath(path: string): boolean {
  return PLAIN_PATH.test(path) && new URL(path, "http://localhost").pathname === path;
}

function readRedirect(uri: string | undefined): { host: RedirectHost; path: string; port: number } | undefined {
  const url = parseUrl(uri);
  if (url === undefined) return undefined;
  const { hostname: host, pathname: path, port: digits } = url;
  if (host !== "127.0.0.1" && host !== "localhost") return undefined;
  const port = digits === "" ? 80 : Number(digits);
  // Rebuilt, it must be the same: then it has no other part.
  return isPlainPath(path) && redirectUri({ host, path }, port) === uri ? { host, path, port } : undefined;
}
