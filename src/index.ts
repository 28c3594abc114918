/**
 * `agentauth`: the management client of the agent authentication service, the client for tokens of MCP servers, errors
 * and types.
 *
 * @module
 */
export type { PlaceToken, TokenSource } from "./api/auth.js";
export {
  AgentAuth,
  type AgentAuthOptions,
  type DeviceOperations,
  type ListOperation,
  type RawClient,
} from "./api/client.js";
export { Listing } from "./api/listing.js";
export type { Drift, ListOptions, Page, Verdict } from "./api/page.js";
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
  type ErrorClass,
  type ErrorCode,
  isAgentAuthError,
  SERVICE_ERROR_CODES,
  type ServiceErrorCode,
} from "./errors.js";
export type { Clock } from "./http/deadline.js";
export type { Network, NetworkWay } from "./http/network.js";
export type { Lifted, Reach } from "./http/reach.js";
export type { HttpEvent } from "./http/reply.js";
export type { TransportOptions } from "./http/transport.js";
export { AccessToken } from "./oauth/access-token.js";
export {
  AgentClient,
  type AgentClientOptions,
} from "./oauth/agent.js";
export type { ExchangeOptions } from "./oauth/agent-exchange.js";
export type { DiscoveryReport, StatusOptions } from "./oauth/agent-options.js";
export type { BearerChallenge } from "./oauth/challenge.js";
export type { ClientKey, SigningAlgorithm } from "./oauth/client-auth.js";
export type { Overrides } from "./oauth/discovery.js";
export type { Discovered, IssuerMetadata, ResourceMetadata, ServerMetadata } from "./oauth/discovery-types.js";
export { type DpopPolicy, generateProofKey, type Prover, proverOf } from "./oauth/dpop.js";
export type { RemoteLogout } from "./oauth/end-session.js";
export { ExchangedToken, type ExchangeRequest, exchangeTokens } from "./oauth/exchange.js";
export type { AuthMethod, ClientRecord, Grant, GrantEndpoints, GrantTokens } from "./oauth/grant.js";
export type { GrantKey, GrantStore, Reservation } from "./oauth/grant-store.js";
export type { Introspection } from "./oauth/introspection.js";
export type { PreRegisteredClient } from "./oauth/known-client.js";
export type { Lease, LeaseOptions, PreviousAttempt } from "./oauth/lease.js";
export type {
  AuthorizePrompt,
  DevicePrompt,
  EndpointsPrompt,
  LoginMethod,
  LoginOpen,
  LoginOutcome,
  LoginSession,
} from "./oauth/login.js";
export type { LoginStatus } from "./oauth/login-status.js";
export type { IdentityProvider, MachineGrant, MachineGrantType } from "./oauth/machine-grant.js";
export {
  clientCredentialsTokens,
  type IdJagRequest,
  idJagAssertion,
  jwtBearerTokens,
  type TokenWish,
} from "./oauth/machine-tokens.js";
export { Nonces } from "./oauth/nonces.js";
export type { PreparedLogin } from "./oauth/prepared-login.js";
export type { Progress } from "./oauth/progress.js";
export type { TokenCall } from "./oauth/token.js";
export { type TokenCallOptions, tokenCall } from "./oauth/token-call.js";
export type { TokenOptions } from "./oauth/token-options.js";
export type { Step, TraceEntry } from "./oauth/trace.js";
export { Secret } from "./redact.js";
export { memoryStore } from "./store/memory.js";
