import { AgentAuthError } from "../errors.js";
import { parseUrl, secureAddress } from "../http/address.js";
import { DOCUMENT_PORTS } from "../oauth/client/metadata-document.js";
import { quote } from "../redact.js";

/** How a host of this machine is spelled in a redirect address; authorization servers compare it letter by letter. */
export type RedirectHost = "127.0.0.1" | "localhost";

/** What the user or the program requires of the redirect address. */
export interface RedirectSettings {
  /**
   * The whole redirect address, such as an https one behind which a proxy forwards requests to this machine. The three
   * parts below are then those of the address to listen at; `redirectPort` is required unless this one is http.
   */
  redirectUri?: string | undefined;
  /** How the redirect address spells this machine. Default `127.0.0.1` (RFC 8252 section 8.3). */
  redirectHost?: RedirectHost | undefined;
  /** A required port, 1 to 65535. Default: any free one. */
  redirectPort?: number | undefined;
  /** Default `/callback`. */
  redirectPath?: string | undefined;
}

/** What decides about the redirect address of a login. */
export interface RedirectOptions extends RedirectSettings {
  /** The redirect address of an earlier registration. */
  preferred?: string | undefined;
}

/** The shape of the listener's address, and the ports to try, in order; 0 lets the system choose. */
export interface RedirectPlan {
  /** The redirect address, where it is not that of the listener's port. */
  uri?: string;
  host: RedirectHost;
  path: string;
  ports: readonly number[];
}

const DEFAULT_PATH = "/callback";
const PLAIN_PATH = /^\/(?:[\w\-.~]+(?:\/[\w\-.~]+)*\/?)?$/;

/**
 * Chooses a redirect address and where to listen for it. An earlier one is reused where it meets the options; only a port
 * given in the options is required.
 *
 * @throws `TypeError` for a port, a path or an address that cannot be one
 * @throws AgentAuthError `usage` for an address that does not say the port to listen at
 */
export function planRedirect(options: RedirectOptions): RedirectPlan {
  const { redirectHost: host, redirectPort: port, redirectPath: path, redirectUri: uri } = options;
  if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= 65_535))
    throw new TypeError("the redirect port must be a whole number from 1 to 65535");
  if (path !== undefined && !isPlainPath(path)) throw new TypeError(`the redirect path ${REDIRECT_PATH_RULE}`);
  if (uri !== undefined) return planOwnRedirect(uri, options);
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

function planOwnRedirect(uri: string, options: RedirectOptions): RedirectPlan {
  const { redirectHost: host, redirectPort: port, redirectPath: path } = options;
  if (!isRedirectUri(uri)) throw new TypeError(`the redirect address ${quote(uri)} ${REDIRECT_URI_RULE}`);
  const url = new URL(uri);
  const own = url.protocol === "http:" ? Number(url.port || 80) : undefined;
  const listened = port ?? own;
  if (listened === undefined) {
    const hint = `choose the port of this machine that ${quote(url.origin)} is forwarded to (the flow paste needs none)`;
    const remedy = { action: "configure", option: "redirectPort" } as const;
    const message = `the redirect address ${quote(uri)} does not say at which port of this machine to listen`;
    throw new AgentAuthError("usage", message, { class: "usage", hint, remedy });
  }
  const named = url.hostname === "127.0.0.1" ? url.hostname : "localhost";
  return { uri, host: host ?? named, path: path ?? url.pathname, ports: [listened] };
}

/** Where a login with a redirect address of the user listens. @throws as {@link planRedirect} */
export function listenAddress(options: RedirectOptions): string {
  const plan = planRedirect(options);
  return redirectUri(plan, plan.ports[0] ?? 0);
}

/** What {@link isRedirectUri} requires. */
export const REDIRECT_URI_RULE = "must be an https address, or http to this machine, without blanks and a fragment";

/** Whether an address can be the redirect address of a user; it is sent as it is written, and compared letter by letter. */
export function isRedirectUri(uri: string): boolean {
  return /^[!-~]+$/.test(uri) && secureAddress(uri) !== undefined;
}

export function redirectUri({ host, path }: Pick<RedirectPlan, "host" | "path">, port: number): string {
  return `http://${formatAuthority(host, port)}${path}`;
}

/** Host and port as browsers send them. */
export function formatAuthority(host: string, port: number): string {
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
