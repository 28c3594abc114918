import pg from "pg";
import postgres from "postgres";
import type { QueryClient, UnsafeClient } from "../../../src/store/postgres/client.js";
import type { PostgresServer } from "./postgres-server.js";

/** A client of a test. */
export interface TestClient {
  readonly client: QueryClient | UnsafeClient;
  close(): Promise<void>;
}

export const CLIENTS: Readonly<Record<"pg" | "postgres", (options: PostgresServer["options"]) => TestClient>> = {
  pg(options) {
    const pool = new pg.Pool({ ...options, max: 10 });
    // Without a listener the loss of an idle connection ends the process.
    pool.on("error", () => {});
    return { client: pool, close: () => pool.end() };
  },
  postgres(options) {
    const sql = postgres({ ...options, max: 10, onnotice: () => {} });
    return { client: sql, close: () => sql.end({ timeout: 1 }) };
  },
};
