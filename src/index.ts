/**
 * The management client of the agent authentication service, the client for tokens of MCP servers, errors
 * and types. Stores and other parts that a client is made of are in `agentauth/store`.
 *
 * @module agentauth
 */
export type { PlaceToken, TokenSource } from "./api/auth.js";
export { ManagementClient, type ManagementClientOptions, type RawClient } from "./api/client.js";
export type { Listing, ListingResponse, ResourceOperations } from "./api/listing.js";
export type { Drift, IgnoredSorting, ListingSummary, ListOptions, Page, UnseenShifts } from "./api/page.js";
export type { components, operations, paths } from "./api/schema.gen.js";
export type {
  CallOptions,
  Check,
  Device,
  DeviceSorting,
  Domain,
  DynamicClientDetails,
  InteractionDetails,
  Open,
  OpenSorting,
  PaginationOutput,
  Pool,
  Sorting,
  SortingEncoding,
  SortText,
} from "./api/types.js";
export {
  type ClientErrorCode,
  type ErrorCode,
  type OAuthErrorCode,
  type OtherErrorCode,
  SERVICE_ERROR_CODES,
  type ServiceErrorCode,
} from "./error-codes.js";
export {
  AgentAuthError,
  type AgentAuthErrorJson,
  type AgentAuthErrorOptions,
  type ErrorClass,
  isAgentAuthError,
  type UnusableItems,
} from "./errors.js";
export type { AddressClass, Exemptions, Network, NetworkConnection } from "./http/address-class.js";
export type { HttpEvent } from "./http/buffered-response.js";
export type { Clock } from "./http/deadline.js";
export type { CallLimits, Logger, TransportOptions } from "./http/transport.js";
export type { AgentHealth, LoginException, LoginStatus } from "./oauth/agent.js";
export { AgentClient, type AgentClientOptions } from "./oauth/agent.js";
export type { DisconnectSummary } from "./oauth/agent-logout.js";
export type { DiscoveryReport, IdpOptions, StatusOptions, StoredGrants } from "./oauth/agent-options.js";
export type {
  AgentUser,
  DisconnectAllOptions,
  DisconnectOptions,
  ExchangeOptions,
  IdpLogout,
} from "./oauth/agent-tokens.js";
export type { ClientKey, PreRegisteredClient, SigningAlgorithm } from "./oauth/client/client-auth.js";
export type { IssuerQuestion } from "./oauth/client/issuer-binding.js";
export type { SecurityPolicy } from "./oauth/discovery/overrides.js";
export type { DpopPolicy } from "./oauth/dpop/dpop.js";
export type { LoginOptions, TokenOptions } from "./oauth/grant/grant-requirements.js";
export type { AgentRequestInit } from "./oauth/grant/token-fetch.js";
export type { HandOver, HandOverClientAuth, HandOverFormats, McpOAuthCredential } from "./oauth/hand-over.js";
export type { Progress, Step, TraceEntry } from "./oauth/http/http.js";
export {
  type KeepAliveOptions,
  type KeepAliveProgress,
  type KeepAliveReport,
  type KeepAliveResult,
  keepAlive,
  type OverdueLogins,
} from "./oauth/keep-alive.js";
export type { DeviceAuthorization, PreparedDeviceLogin, PreparedLogin } from "./oauth/login/authorization.js";
export type {
  AuthorizePrompt,
  CompletedLogin,
  DevicePrompt,
  EndpointsPrompt,
  LoginMethod,
  LoginOpen,
  LoginOutcome,
  LoginSession,
} from "./oauth/login/login-method.js";
export type {
  CallbackDone,
  CallbackOptions,
  CallbackRedirect,
  CallbackResult,
  FinishedLogin,
  LoginStart,
  StartedLogin,
  StartLoginOptions,
} from "./oauth/login/web-app.js";
export {
  type LoginHandlers,
  type LoginHandlersOptions,
  type LoginMiddleware,
  type LoginMiddlewares,
  type LoginNodeRequest,
  type LoginNodeResponse,
  loginHandlers,
  loginMiddlewares,
} from "./oauth/login-handlers.js";
export type { McpAuthProvider, ProviderOptions } from "./oauth/mcp-sdk/sdk-provider.js";
export type { AuthorizationParams } from "./oauth/model/authorization-params.js";
export type { BearerChallenge } from "./oauth/model/challenge.js";
export type { Connection, ConnectionPage, ConnectionQuery, ConnectionState } from "./oauth/model/connection.js";
export type {
  AccessToken,
  AuthMethod,
  ClientRecord,
  Grant,
  GrantEndpoints,
  GrantKey,
  GrantTokens,
  LostRefresh,
} from "./oauth/model/grant.js";
export type {
  BindingKey,
  BoundBy,
  ClientBinding,
  DueLogin,
  DueLogins,
  DuePage,
  GrantFilter,
  GrantStore,
  Reservation,
  ShortLivedRecords,
  StoreHealth,
  UnrevokedLogins,
} from "./oauth/model/grant-store.js";
export type { Lease, LeaseHolder, LeaseOptions, PreviousAttempt, RecordedFailure } from "./oauth/model/lease.js";
export type {
  AssertionRequest,
  IdentityProvider,
  IdJagSubject,
  MachineGrant,
  MachineGrantType,
  Workload,
} from "./oauth/model/machine-grant.js";
export type { Discovered, IssuerMetadata, ResourceMetadata, ServerMetadata } from "./oauth/model/metadata.js";
export type { ExchangedToken } from "./oauth/token/exchange.js";
export type { Introspection } from "./oauth/token/introspection.js";
export type { RemoteLogout } from "./oauth/token/revocation.js";
export { Secret } from "./redact.js";
export type {
  AllowRemedy,
  ConfigureOption,
  ConfigureRemedy,
  LoginRemedy,
  OpenRemedy,
  PolicyOption,
  Remedy,
  UnseenByLogin,
} from "./remedy.js";
export type { AgentEvent, EventFields, EventName } from "./telemetry/events.js";
