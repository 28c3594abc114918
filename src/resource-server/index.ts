/**
 * Verifies tokens, bearer tokens and those that are bound to a key, answers requests without a
 * valid one, and serves the metadata document of a protected server. Web-standard interfaces only.
 *
 * @module agentauth/resource-server
 */

export type { ResourceMetadataDocument } from "./challenge.js";
export type { AuthInfo, TokenClaims, VerifiedToken } from "./claims.js";
export type { Presentation } from "./dpop.js";
export type {
  Admission,
  HonoContext,
  HonoMiddleware,
  NodeMiddleware,
  NodeRequest,
  NodeResponse,
  ProtectedHandler,
  Scopes,
  VerifyOptions,
} from "./middleware.js";
export type { IntrospectionOptions, ResourceServerOptions } from "./options.js";
export type { RefusalReason, ResourceServerEvent, Scheme } from "./refusal.js";
export { createResourceServer, type ResourceServer } from "./resource-server.js";
