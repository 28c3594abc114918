import { serverMetadata } from "./cases/server-metadata.js";
import { hostile } from "./table.js";

hostile("server metadata", serverMetadata);
