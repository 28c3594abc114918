export { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
