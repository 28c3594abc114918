// Locks in Redis, each as its documentation uses it. A lock runs a piece of work as soon as nobody else has it.
import { randomUUID } from "node:crypto";
import { Mutex } from "redis-semaphore";
import Redlock from "redlock";

/** Of oauth2-proxy, whose lock is not extended either. */
const SET_NX_MS = 2000;
/** Not extended. Its documentation has examples of one second. */
const REDLOCK_MS = 10_000;
const RETRY_MS = 100;
/** Longer than all of a run; the default is to give up after ten seconds. */
const PATIENCE_MS = 120_000;
const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/** No lock. */
export const none = () => (_, work) => work();

/** `SET NX PX` with an owner, deleted by its owner only. */
export const setNx = (redis) => async (name, work) => {
  const [key, owner] = [`lock:${name}`, randomUUID()];
  while ((await redis.set(key, owner, "PX", SET_NX_MS, "NX")) === null)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (0.5 + Math.random())));
  try {
    return await work();
  } finally {
    await redis.eval(RELEASE, 1, key, owner);
  }
};

export const redlock = (redis) => {
  const lock = new Redlock([redis], { retryCount: -1 });
  return async (name, work) => {
    const held = await lock.lock(`lock:${name}`, REDLOCK_MS);
    try {
      return await work();
    } finally {
      // It fails if the lock has expired.
      await held.unlock().catch(() => {});
    }
  };
};

/** Held for ten seconds, and extended every eight. */
export const semaphore = (redis) => async (name, work) => {
  const mutex = new Mutex(redis, name, { acquireTimeout: PATIENCE_MS, onLockLost: () => {} });
  await mutex.acquire();
  try {
    return await work();
  } finally {
    await mutex.release();
  }
};
