import { expect, it } from "vitest";
import { agentNetwork } from "../../src/profile/agent-network.js";
import { Redactor } from "../../src/redact.js";
import { startServer } from "../helpers/server.js";

it("keeps what a request authenticates with from being shown by what follows, whatever a server makes of it", async () => {
  const { origin } = await startServer((response) => void response.end("hello"));
  const redactor = new Redactor();
  const network = await agentNetwork({ proxy: undefined, caFile: undefined, env: {} }, redactor);
  const { fetch } = network.connectTo(new URL(origin), new Set());
  expect(redactor.redactKnown("it was opaque-token-1")).toContain("opaque-token-1");
  await fetch(origin, { headers: { authorization: "Bearer opaque-token-1" } });
  await fetch(new Request(origin, { headers: { authorization: "DPoP opaque-token-2" } }));
  const said = redactor.redactKnown("it was opaque-token-1, then opaque-token-2");
  expect(said).toBe("it was ********, then ********");
});
