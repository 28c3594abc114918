import { discovery } from "./cases/discovery.js";
import { hostile } from "./table.js";

hostile("discovery", discovery);
