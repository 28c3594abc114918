/**
 * The wire types of the management interface as the sandbox sends them: exact, every field present. A client has to
 * read more loosely than this; a server has to write no more loosely.
 */

/** What kind of list: also the last segment of its path under `/api/v1`. */
export type ResourceName = "pool" | "domain" | "device";

/** One pool of agents inside a domain. */
export interface Pool {
  account_id: string;
  authentication_ruleset_nid: string;
  domain_id: string;
  id: string;
  /** `active`, `paused` or `archived`. The service does not document its values. */
  status: string;
  title: string;
  type: "pool";
}

/** One domain inside an account. */
export interface Domain {
  account_id: string;
  id: string;
  /** `active`, `paused` or `archived`. The service does not document its values. */
  status: string;
  title: string;
  type: "domain";
}

/** How a device reaches the service. */
export type SessionType = "browser" | "api" | "mcp";

/** Whether a device may still be used. */
export type DeviceStatus = "active" | "revoked";

/** A device at one moment. */
export interface InteractionDetails {
  /** Autonomous System Number. */
  asn: number;
  /** Unix time in seconds, with up to two decimals. */
  at: number;
  city: string;
  /** ISO 3166-1 alpha-2. */
  country_code: string;
  ja4_fingerprint: string;
  /** Latitude and longitude in degrees. */
  lat_long: [number, number];
  region_code: string;
  /** IPv4, always from a range reserved for documentation. */
  remote_ip: string;
  /** IANA timezone identifier. */
  timezone: string;
  user_agent: string;
}

/** The OAuth client that a device registered. */
export interface DynamicClientDetails {
  auth_profile: "openid" | "mcp";
  /** Always the literal `<CLIENT_SECRET>`. */
  client_secret: "<CLIENT_SECRET>";
  pkce_required: boolean;
  redirect_uris: string[];
  title: string;
}

/** One device of a pool. */
export interface Device {
  account_id: string;
  domain_id: string;
  pool_id: string;
  id: string;
  dynamic_client_details: DynamicClientDetails;
  first_seen: InteractionDetails;
  last_seen: InteractionDetails;
  session_type: SessionType;
  status: DeviceStatus;
  title: string;
  type: "device";
}

/** Where a page stands in its list. */
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

/** A successful list answer. */
export interface ListEnvelope<T> {
  status: "success";
  pagination: PaginationOutput;
  sorting: Sorting;
  summaries: T[];
}

/** An error answer. */
export interface ErrorEnvelope {
  status: "error";
  code: string;
  message: string;
}
