export * from "jsonc-parser";
