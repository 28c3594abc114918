/**
 * `agentauth/otel`: spans and metrics of what agent clients and brokers do, for OpenTelemetry.
 *
 * @module
 */
export { type InstrumentOptions, instrument } from "./otel.js";
