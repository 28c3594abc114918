import { output } from "./cases/output.js";
import { hostile } from "./table.js";

hostile("output", output);
