/**
 * `agentauth/testing`: proves a driver of an engine that agentauth does not know. Web-standard interfaces only.
 *
 * @module
 */

export type * from "../store/driver/driver.js";
export type { DriverJob } from "./bench.js";
export { type DeclareTest, type DriverContractOptions, driverContract } from "./driver-contract.js";
export { runJob } from "./process-cases.js";
