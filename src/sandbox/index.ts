/**
 * The whole service on loopback, with faults on request: what tests of clients run against.
 *
 * @module agentauth/sandbox
 */
export type { Account, SandboxData } from "./data/data.js";
export type { DeviceDraft } from "./data/pool-devices.js";
export type {
  DeviceStatus,
  SandboxDevice,
  SandboxDomain,
  SandboxInteraction,
  SandboxPool,
  SessionType,
} from "./data/sample-device.js";
export { parseFault } from "./faults/check-fault.js";
export type { FaultController, FaultState } from "./faults/controller.js";
export {
  FAULT_ENDPOINTS,
  FAULT_KINDS,
  type Fault,
  type FaultEffect,
  type FaultEndpoint,
  type FaultKind,
  type FaultSelector,
} from "./faults/faults.js";
export type { SandboxClock } from "./http/clock.js";
export type { LoggedRequest, RequestLog } from "./http/requests.js";
export type { CreateMcpServer, McpNotifier, McpServerContext } from "./mcp/own-server.js";
export type { OAuthOptions } from "./oauth/issuer-settings.js";
export type { AssertionClaims, SandboxMachine } from "./oauth/machine.js";
export { type Sandbox, startSandbox } from "./sandbox.js";
export type { SandboxOptions } from "./sandbox-settings.js";
