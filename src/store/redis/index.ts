/**
 * The store in Redis or Valkey: a driver for `grantStore` over the application's own client.
 *
 * @module redis
 */
export type * from "../driver/driver.js";
export type {
  IoRedisClient,
  NodeRedisClient,
  RedisClientConnection,
  RedisConnection,
  RedisSend,
  RedisSendConnection,
} from "./connection.js";
export { type RedisDriverOptions, type ReplicaWait, redisDriver } from "./redis-driver.js";
