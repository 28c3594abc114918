import { resourceMetadata } from "./cases/resource-metadata.js";
import { hostile } from "./table.js";

hostile("resource metadata", resourceMetadata);
