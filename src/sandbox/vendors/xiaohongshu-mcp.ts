import type { ServerShape } from "./shape.js";

/** The shape of xiaohongshu-mcp. */
export const xiaohongshuMcp: ServerShape = {
  id: "xiaohongshu-mcp",
  title: "xiaohongshu-mcp",
  about: "The server asks for no login, and refuses newer protocol versions with HTTP 400.",
  source: "https://github.com/xpzouying/xiaohongshu-mcp/issues/697",
  date: "2026-05-16",
  byDefault: true,
  options: {},
  server: "https://xiaohongshu.example/mcp",
  documents: {},
  open: true,
  protocols: ["2025-06-18", "2025-03-26", "2024-11-05"],
};
