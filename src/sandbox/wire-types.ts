/**
 * The wire types of the management API as the sandbox sends them: exact, every field present. A client must accept
 * more than this; a server must not send more.
 */

/** What kind of list: also the last segment of its path under `/api/v1`. */
export type ResourceName = "pool" | "domain" | "device";

/** One pool of agents inside a domain. */
export interface Pool {
  /** The account of its domain. */
  account_id: string;
  /** The rules by which its agents log in. */
  authentication_ruleset_nid: string;
  /** The domain that it is in. */
  domain_id: string;
  /** Its identifier. */
  id: string;
  /** `active`, `paused` or `archived`. The service does not document its values. */
  status: string;
  /** Its display name. */
  title: string;
  /** Distinguishes it from domains and devices. */
  type: "pool";
}

/** One domain inside an account. */
export interface Domain {
  /** The account that it is in. */
  account_id: string;
  /** Its identifier. */
  id: string;
  /** `active`, `paused` or `archived`. The service does not document its values. */
  status: string;
  /** Its display name. */
  title: string;
  /** Distinguishes it from pools and devices. */
  type: "domain";
}

/** How a device reaches the service. */
export type SessionType = "browser" | "api" | "mcp";

/** Whether a device may still be used. */
export type DeviceStatus = "active" | "revoked";

/** Where and how a device contacted the service at one moment. */
export interface InteractionDetails {
  /** Autonomous System Number. */
  asn: number;
  /** Unix time in seconds, with up to two decimals. */
  at: number;
  /** The city of the address. */
  city: string;
  /** ISO 3166-1 alpha-2. */
  country_code: string;
  /** JA4, the fingerprint of its TLS handshake. */
  ja4_fingerprint: string;
  /** Latitude and longitude in degrees. */
  lat_long: [number, number];
  /** The region inside the country. */
  region_code: string;
  /** IPv4, always from a range reserved for documentation. */
  remote_ip: string;
  /** IANA timezone identifier. */
  timezone: string;
  /** The `User-Agent` header, as the device sent it. */
  user_agent: string;
}

/** The OAuth client that a device registered. */
export interface DynamicClientDetails {
  /** What it registered for. */
  auth_profile: "openid" | "mcp";
  /** Always the literal `<CLIENT_SECRET>`. */
  client_secret: "<CLIENT_SECRET>";
  /** Whether it must use PKCE. */
  pkce_required: boolean;
  /** Its registered redirect URIs. */
  redirect_uris: string[];
  /** Its `client_name`. */
  title: string;
}

/** One device of a pool. */
export interface Device {
  /** The account of its domain. */
  account_id: string;
  /** The domain of its pool. */
  domain_id: string;
  /** The pool that it is in. */
  pool_id: string;
  /** Its identifier. */
  id: string;
  /** The OAuth client that it registered. */
  dynamic_client_details: DynamicClientDetails;
  /** Its first contact. */
  first_seen: InteractionDetails;
  /** Its latest contact. */
  last_seen: InteractionDetails;
  /** How it reaches the service. */
  session_type: SessionType;
  /** Whether it may still be used. */
  status: DeviceStatus;
  /** Its display name. */
  title: string;
  /** Distinguishes it from pools and domains. */
  type: "device";
}

/** The position of a page in its list. */
export interface PaginationOutput {
  item_count: number;
  /** One-based; 0 on a page without items. */
  item_start: number;
  /** One-based and inclusive; 0 on a page without items. */
  item_end: number;
  page_count: number;
  /** `floor(page_offset / page_size) + 1`, also where the offset is no multiple of the page size. */
  page_index: number;
  page_offset: number;
  page_size: number;
  next_page_offset: number | null;
  previous_page_offset: number | null;
}

/** Ascending or descending. Descending is the exact reverse of ascending, ties included. */
export type Direction = "asc" | "desc";

/** The order that was applied. */
export interface Sorting {
  direction: Direction;
  field: string;
}

/** A successful list response. */
export interface ListEnvelope<T> {
  status: "success";
  pagination: PaginationOutput;
  sorting: Sorting;
  summaries: T[];
}

/** An error response. */
export interface ErrorEnvelope {
  status: "error";
  code: string;
  message: string;
}
