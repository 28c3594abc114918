// The parts of the built package that a fleet uses.
import { pathToFileURL } from "node:url";

const { SOAK_DIST } = process.env;
const folder = SOAK_DIST ? pathToFileURL(`${SOAK_DIST}/`) : new URL("../../dist/", import.meta.url);
const load = (file) => import(new URL(file, folder));

export const { grantStore } = await load("store/driver/grant-store.js");
export const { keyRing } = await load("store/seal/key-ring.js");
export const { redisDriver } = await load("store/redis/index.js");
export const { postgresDriver, storeSql } = await load("store/postgres/index.js");
