export * from "commander";
