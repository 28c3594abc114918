export * from "@modelcontextprotocol/server";
