/**
 * `agentauth`: the management client of the agent authentication service, the client for tokens of MCP servers, errors
 * and types.
 *
 * @module
 */
export type { PlaceToken, TokenSource } from "./api/auth.js";
export {
  type DeviceOperations,
  type ListOperation,
  ManagementClient,
  type ManagementClientOptions,
  type RawClient,
} from "./api/client.js";
export { Listing } from "./api/listing.js";
export type { Drift, ListingSummary, ListOptions, Page } from "./api/page.js";
export type { components, operations, paths } from "./api/schema.gen.js";
export type {
  Device,
  DeviceSorting,
  Domain,
  InteractionDetails,
  Open,
  OpenSorting,
  PaginationOutput,
  Pool,
  Sorting,
} from "./api/types.js";
export {
  AgentAuthError,
  type AgentAuthErrorJson,
  type AgentAuthErrorOptions,
  type ClientErrorCode,
  type ConfigureOption,
  type ConfigureRemedy,
  type ErrorClass,
  type ErrorCode,
  isAgentAuthError,
  type LoginRemedy,
  type PolicyOption,
  type Remedy,
  SERVICE_ERROR_CODES,
  type ServiceErrorCode,
} from "./errors.js";
export type { AddressClass, Exemptions } from "./http/address-class.js";
export type { HttpEvent } from "./http/buffered-response.js";
export type { Clock } from "./http/deadline.js";
export type { Network, NetworkConnection } from "./http/network.js";
export type { TransportOptions } from "./http/transport.js";
export {
  AgentClient,
  type AgentClientOptions,
} from "./oauth/agent.js";
export type { ExchangeOptions } from "./oauth/agent-exchange.js";
export type { DiscoveryReport, StatusOptions } from "./oauth/agent-options.js";
export type { Progress } from "./oauth/agent-progress.js";
export type { ClientKey, SigningAlgorithm } from "./oauth/client/client-auth.js";
export type { BindingKey, BoundBy, ClientBinding } from "./oauth/client/client-binding.js";
export type { IssuerQuestion } from "./oauth/client/issuer-binding.js";
export type { PreRegisteredClient } from "./oauth/client/pre-registered-client.js";
export type { BearerChallenge } from "./oauth/discovery/challenge.js";
export type { Overrides } from "./oauth/discovery/discovery.js";
export type { Discovered, IssuerMetadata, ResourceMetadata, ServerMetadata } from "./oauth/discovery/types.js";
export { type DpopPolicy, generateProofKey, type Prover, proverOf } from "./oauth/dpop/dpop.js";
export { Nonces } from "./oauth/dpop/nonces.js";
export { AccessToken } from "./oauth/grant/access-token.js";
export type { AuthMethod, ClientRecord, Grant, GrantEndpoints, GrantTokens, LostRefresh } from "./oauth/grant/grant.js";
export type { GrantKey, GrantStore, Reservation } from "./oauth/grant/grant-store.js";
export type { Lease, LeaseOptions, PreviousAttempt } from "./oauth/grant/lease.js";
export type { TokenOptions } from "./oauth/grant/token-options.js";
export type { Step, TraceEntry } from "./oauth/http/trace.js";
export type {
  AuthorizePrompt,
  DevicePrompt,
  EndpointsPrompt,
  LoginMethod,
  LoginOpen,
  LoginOutcome,
  LoginSession,
} from "./oauth/login/login-method.js";
export type { LoginStatus } from "./oauth/login/login-status.js";
export type { PreparedLogin } from "./oauth/login/prepared-login.js";
export {
  clientCredentialsTokens,
  type IdJagRequest,
  idJagAssertion,
  jwtBearerTokens,
  type TokenParameters,
} from "./oauth/machine/machine-tokens.js";
export type { IdentityProvider, MachineGrant, MachineGrantType } from "./oauth/machine/types.js";
export { ExchangedToken, type ExchangeRequest, exchangeTokens } from "./oauth/token/exchange.js";
export type { Introspection } from "./oauth/token/introspection.js";
export type { RemoteLogout } from "./oauth/token/revocation.js";
export type { TokenCall } from "./oauth/token/token.js";
export { type TokenCallOptions, tokenCall } from "./oauth/token/token-call.js";
export { Secret } from "./redact.js";
export { memoryStore } from "./store/memory.js";
