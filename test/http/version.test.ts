import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { userAgent, VERSION } from "../../src/http/version.js";
import { ManagementClient } from "../../src/index.js";
import { sendJson, startServer } from "../helpers/server.js";

describe("the user agent", () => {
  it("has the version of package.json", () => {
    const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as object;
    expect(manifest).toMatchObject({ name: "agentauth", version: VERSION });
    expect(userAgent()).toBe(`agentauth/${VERSION}`);
  });

  it("is sent, with the program's own name in front", async () => {
    const server = await startServer((response) =>
      sendJson(response, { status: "success", summaries: [], pagination: {} }),
    );
    await new ManagementClient({ baseUrl: server.origin }).get("/api/v1/pool");
    await new ManagementClient({ baseUrl: server.origin, userAgent: "inventory/2.1" }).get("/api/v1/pool");
    expect(server.requests.map((request) => request.headers["user-agent"])).toEqual([
      `agentauth/${VERSION}`,
      `inventory/2.1 agentauth/${VERSION}`,
    ]);
  });
});
