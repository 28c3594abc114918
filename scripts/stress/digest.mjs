import { createHash } from "node:crypto";

/** Identifies a token between these processes, so that no token is printed. */
export function digest(token) {
  return createHash("sha256").update(token).digest("hex");
}
