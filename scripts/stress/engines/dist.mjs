// The parts of the built package that a fleet uses.
import { pathToFileURL } from "node:url";

const { SOAK_DIST } = process.env;
const folder = SOAK_DIST ? pathToFileURL(`${SOAK_DIST}/`) : new URL("../../../dist/", import.meta.url);
const load = (file) => import(new URL(file, folder));

export const { grantStore, keyRing } = await load("store/index.js");
export const { redisDriver } = await load("store/redis/index.js");
export const { postgresDriver, storeSql } = await load("store/postgres/index.js");
