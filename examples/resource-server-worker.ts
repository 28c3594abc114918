// A protected MCP server for runtimes that export a fetch handler: workers, Deno, Bun. RESOURCE and ISSUER are bindings.
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { createResourceServer } from "agentauth/resource-server";

const mcp = createMcpHandler(({ authInfo }) => {
  const made = new McpServer({ name: "example", version: "1.0.0" });
  made.registerTool("whoami", { description: "Returns the caller." }, () => ({
    content: [{ type: "text", text: `${authInfo?.extra?.["subject"]} by ${authInfo?.clientId}` }],
  }));
  return made;
});

// Created once, so that the issuer's keys are cached between requests.
let handle: ((request: Request) => Promise<Response>) | undefined;

export default {
  fetch(
    request: Request,
    { RESOURCE: resource, ISSUER: issuer }: { RESOURCE: string; ISSUER: string },
  ): Promise<Response> {
    handle ??= createResourceServer({ resource, authorizationServers: [issuer] }).protect((asked, { authInfo }) =>
      mcp.fetch(asked, { authInfo }),
    );
    return handle(request);
  },
};
