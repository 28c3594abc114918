import { handOver } from "./cases/hand-over.js";
import { hostile } from "./table.js";

hostile("login that is handed over", handOver);
