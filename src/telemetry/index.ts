/**
 * Spans and metrics of what agent clients and brokers do, for OpenTelemetry.
 *
 * @module agentauth/otel
 */
export { type InstrumentOptions, instrument } from "./otel.js";
