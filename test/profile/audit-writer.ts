import { openAudit } from "../../src/profile/audit.js";

/** A process that writes numbered lines into an audit file, and says after each which one it was. */
const { path, lines, maxBytes, tool } = JSON.parse(process.argv[2] ?? "{}") as {
  path: string;
  lines: number;
  maxBytes: number;
  tool: string;
};
const write = openAudit({ value: `file:${path}`, source: "AGENTAUTH_AUDIT" }, () => process.exit(1), maxBytes);
for (let line = 0; line < lines; line++) {
  write({ type: "broker", client: "job", method: "POST", tool, status: 200, durationMs: line });
  process.send?.({ event: "wrote", line });
  // A message is sent when the event loop turns.
  await new Promise(setImmediate);
}
process.disconnect?.();
