/**
 * `agentauth/resource-server`: verifies tokens, bearer tokens and those that are bound to a key, answers requests without a
 * valid one, and serves the metadata document of a protected server. Web-standard interfaces only.
 *
 * @module
 */

export type { Scopes, VerifyOptions } from "./authenticator.js";
export type { TokenClaims } from "./claim-checks.js";
export type { Scheme } from "./credentials.js";
export type { Presentation } from "./dpop.js";
export type { RefusalReason, ResourceServerEvent } from "./events.js";
export type { Admission, HonoContext, HonoMiddleware, ProtectedHandler } from "./fetch-handlers.js";
export type { ResourceMetadataDocument } from "./metadata.js";
export type { NodeMiddleware, NodeRequest, NodeResponse } from "./node-middleware.js";
export type { IntrospectionOptions, ResourceServerOptions } from "./options.js";
export { createResourceServer, type ResourceServer } from "./resource-server.js";
export type { AuthInfo, VerifiedToken } from "./verified-token.js";
