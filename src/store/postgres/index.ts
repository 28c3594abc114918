/**
 * A store of logins in PostgreSQL, for a fleet. It has no dependency: the application passes its client.
 *
 * @module agentauth/postgres
 */

export type {
  Parameter,
  PostgresAccess,
  PostgresQuery,
  QueryClient,
  QueryResult,
  UnsafeClient,
} from "./client.js";
export { type PostgresDriverOptions, postgresDriver } from "./postgres-driver.js";
export { type StoreSqlOptions, storeSql } from "./store-sql.js";
