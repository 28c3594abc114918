export { default as crossSpawn } from "cross-spawn";
