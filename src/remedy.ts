/** An option that disables or relaxes the check that failed. */
export type PolicyOption =
  | "acceptTokenType"
  | "allowCrossOriginEndpoints"
  | "allowCrossOriginMetadata"
  | "allowMissingPkceMetadata"
  | "allowNonLoopback"
  | "allowPrivateNetwork"
  | "dpop"
  | "legacyDiscovery"
  | "resource";

/** An option of the SDK, or a part of one, that a remedy names. */
export type ConfigureOption =
  | "account"
  | "apiToken"
  | "assertion"
  | "browser"
  | "ca"
  | "client"
  | "clientCertificate"
  | "clientId"
  | "clientName"
  | "clientSecret"
  | "flow"
  | "idToken"
  | "idpTokenEndpoint"
  | "issuer"
  | "maxPages"
  | "pageSize"
  | "privateKey"
  | "redirectHost"
  | "redirectPort"
  | "resource"
  | "scope"
  | "sorting";

/** Log in at a server. */
export interface LoginRemedy {
  /** The kind of remedy. */
  action: "login";
  /** The MCP server, or with `idp` the issuer of the identity provider. */
  server: string;
  /** Whether the login is one at the company's identity provider: `loginIdp()`. */
  idp?: true | undefined;
  /** The profile that the login is stored in. Default: `default`. */
  profile?: string | undefined;
  /** The account at the server. */
  account?: string | undefined;
  /** Scopes to request, separated by blanks. A server may have named them. */
  scope?: string | undefined;
  /** Whether the tokens are to be bound to a key. Default: `auto`. */
  dpop?: "off" | "auto" | "required" | undefined;
  /** The address of the resource metadata, where the server names it only in its response to some requests. */
  resourceMetadata?: string | undefined;
  /** Parameters of the authorization request, which the issuer of the login is known to need. */
  authorizationParams?: Readonly<Record<string, string>> | undefined;
  /** An option to set as well. */
  option?: "clientId" | "loginTimeoutMs" | "scope" | undefined;
}

/** What a server says only in its response to some requests, so that a login cannot find it. */
export type UnseenByLogin = Pick<LoginRemedy, "scope" | "resourceMetadata">;

/** Set or correct an option. */
export interface ConfigureRemedy {
  /** The kind of remedy. */
  action: "configure";
  /** The option. */
  option: ConfigureOption;
  /** The value that the option has or needs; never a secret. */
  value?: string | undefined;
  /** Another option that helps instead, or that can be wrong too. */
  also?: "clientMetadataUrl" | "clientName" | "idp" | "privateKey" | undefined;
  /** The issuer to register a client with by hand. */
  clientIssuer?: string | undefined;
  /** The client that the option belongs to. */
  clientId?: string | undefined;
  /** The profile that the option belongs to. Default: `default`. */
  profile?: string | undefined;
  /** What the login needs as well. */
  login?: UnseenByLogin | undefined;
}

/** Disable a check, for a server that the user trusts. */
export interface AllowRemedy {
  /** The kind of remedy. */
  action: "allow";
  /** The option that disables the check. */
  option: PolicyOption;
  /** The value that the option needs. */
  value?: string | undefined;
  /** Options for further checks that refuse the same server. */
  also?: readonly PolicyOption[] | undefined;
  /** The issuer to register a client with by hand, where the login needs that as well. */
  clientIssuer?: string | undefined;
  /** What the login needs as well. */
  login?: UnseenByLogin | undefined;
}

/** Open an address that an MCP server needs its user to visit, then call again. */
export interface OpenRemedy {
  /** The kind of remedy. */
  action: "open";
  /** The address: https, or http on this machine. It is as secret as the server made it. */
  url: string;
  /** The MCP server. */
  server: string;
}

/** What to do about an error, as data: an application can show a button for it, a command line a command. */
export type Remedy =
  | LoginRemedy
  | ConfigureRemedy
  | AllowRemedy
  /** Send requests without a token: the server requires no login. */
  | { action: "connect"; server: string }
  /** Get a token with a machine grant, without a login. */
  | { action: "token"; grant?: string | undefined }
  /**
   * Find out more: run discovery, read the grants that the issuer names, check the clock, list the stored logins, or read
   * the SQL of the store's tables.
   */
  | { action: "inspect"; subject: "clock" | "discovery" | "grants" | "logins" | "tables" }
  /** Open an address that the MCP server needs its user to visit, then call again. */
  | OpenRemedy
  /** Call again later. */
  | { action: "retry" }
  /** Read the listing from this offset. */
  | { action: "resume"; offset: number };
