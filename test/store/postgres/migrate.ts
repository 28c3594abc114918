import pg from "pg";
import type { PostgresServer } from "./postgres-server.js";

/** Runs statements as a tool for migrations does. */
export async function migrate(options: PostgresServer["options"], sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client(options);
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}
