import { flood } from "./cases/flood.js";
import { hostile } from "./table.js";

hostile("flood", flood);
