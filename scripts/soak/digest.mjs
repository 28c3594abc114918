import { createHash } from "node:crypto";

/** What stands for a token between the processes here, so that none is ever shown. */
export function digest(token) {
  return createHash("sha256").update(token).digest("hex");
}
