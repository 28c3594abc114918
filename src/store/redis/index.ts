/**
 * The store in Redis or Valkey: a driver for `grantStore` over the application's own client.
 *
 * @module agentauth/redis
 */
export type * from "../driver/driver.js";
export type { IoRedisClient, NodeRedisClient, RedisConnection, RedisSend } from "./connection.js";
export { type RedisDriverOptions, type ReplicaWait, redisDriver } from "./redis-driver.js";
