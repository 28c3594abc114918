export type { SandboxClock } from "./clock.js";
export type { DeviceDraft } from "./data/pool-devices.js";
export type { Account, SandboxData } from "./data.js";
export type { FaultController, FaultState } from "./faults/controller.js";
export { parseFault } from "./faults/parse.js";
export {
  FAULT_ENDPOINTS,
  FAULT_KINDS,
  type Fault,
  type FaultEffect,
  type FaultEndpoint,
  type FaultKind,
  type FaultSelector,
} from "./faults.js";
export type { SandboxMachine, TokenClaims } from "./oauth/machine.js";
export type { OAuthOptions } from "./oauth/settings.js";
export type { LoggedRequest, RequestLog } from "./request-log.js";
export { type Sandbox, startSandbox } from "./sandbox.js";
export type { SandboxOptions } from "./settings.js";
export type { Device, DeviceStatus, Domain, InteractionDetails, Pool, SessionType } from "./types.js";
