/**
 * `agentauth`: the management client of the agent authentication service, its errors and its types.
 *
 * @module
 */
export type { PlaceToken, TokenSource } from "./api/auth.js";
export { AgentAuth, type AgentAuthOptions, type DeviceOperations, type ListOperation, type RawClient } from "./api/client.js";
export { Listing } from "./api/listing.js";
export type { Drift } from "./api/page-numbers.js";
export type { ListOptions, Page, Verdict } from "./api/pages.js";
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
export type { HttpEvent } from "./http/reply.js";
export type { TransportOptions } from "./http/transport.js";
export { Secret } from "./redact.js";
