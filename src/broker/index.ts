/**
 * Programs in a sandbox use logins, and never see a token.
 *
 * @module agentauth/broker
 */
export { type Broker, type BrokerEvent, type BrokerOptions, createBroker } from "./broker.js";
export { type BrokerListener, type ListeningBroker, type ListenOptions, listen } from "./listen.js";
export { type BrokerClient, type BrokerGrant, type BrokerPolicy, checkPolicy } from "./policy.js";
export type { BrokerRefusal } from "./refusal.js";
