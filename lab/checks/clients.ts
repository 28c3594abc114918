// The Redis driver takes the clients of these packages. It is compiled, not run.
import { Redis as IoRedis5 } from "ioredis5";
import { Redis as IoValkey } from "iovalkey";
import { redisDriver } from "../../dist/store/redis/index.js";

export const drivers = [redisDriver({ client: new IoRedis5() }), redisDriver({ client: new IoValkey() })];
