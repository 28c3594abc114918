import { parseUrl } from "../../http/address.js";
import type { ClientRecord } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";
import type { ServerMetadata } from "../model/metadata.js";

/**
 * The ports of the redirect addresses in our metadata document, to try in this order. An issuer that follows RFC 8252
 * section 7.3 accepts any port; others compare the whole address. Systems assign none of these to connections.
 */
export const DOCUMENT_PORTS: readonly number[] = [28_461, 28_462, 28_463];

/** The redirect address that a login with the document tries first. */
export const FIRST_DOCUMENT_REDIRECT = "http://127.0.0.1:28461/callback";

/** The redirect addresses of the logins of this program: without a port, and with each of the ports. */
export const DOCUMENT_REDIRECTS: readonly string[] = ["", ...DOCUMENT_PORTS.map((port) => `:${port}`)].flatMap(
  (port) => [`http://127.0.0.1${port}/callback`, `http://localhost${port}/callback`],
);

export const DAY_MS = 24 * 3_600_000;

/**
 * Which rule the address of a metadata document breaks, to be read after it: it is a client id, which is compared
 * character by character (draft-ietf-oauth-client-id-metadata-document section 3).
 */
export function findDocumentUrlProblem(value: string): string | undefined {
  const url = parseUrl(value);
  if (url?.protocol !== "https:") return "must be an https address";
  if (url.username !== "" || url.password !== "") return "must have no user name and no password";
  if (url.pathname === "/") return "must have a path";
  if (value.includes("#")) return "must have no fragment";
  return url.href === value ? undefined : `must be written as ${url.href}`;
}

export interface DocumentUse {
  server: ServerMetadata;
  store: GrantStore;
  preRegistered: unknown;
  clientMetadataUrl: string | undefined;
  /** Unix milliseconds. */
  now: number;
}

/**
 * Whether the metadata document is the client for an issuer: where the issuer supports such documents, and has not
 * refused this one within a day. A refusal does not count where the issuer registers no clients.
 */
export async function usesDocument(use: DocumentUse, issuer: string): Promise<boolean> {
  const { server, store, preRegistered, clientMetadataUrl, now } = use;
  if (preRegistered !== undefined || !server.takesClientIdDocuments) return false;
  if (clientMetadataUrl === undefined || clientMetadataUrl === "none") return false;
  if (server.registrationEndpoint === undefined) return true;
  const { isRefused, registeredAt = [] } = (await store.readClient(issuer, clientMetadataUrl)) ?? {};
  return !(isRefused && registeredAt.some((at) => at <= now && now - at < DAY_MS));
}

/** Stores that an issuer refuses a metadata document, so that a client is registered instead. */
export function refuseDocument(store: GrantStore, client: ClientRecord, now: number): Promise<void> {
  const { clientId } = client;
  return store.saveClient({ ...client, redirectUri: clientId, isRefused: true, registeredAt: [now] }, clientId);
}
