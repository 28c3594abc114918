import { config } from "./cases/config.js";
import { hostile } from "./table.js";

hostile("config", config);
