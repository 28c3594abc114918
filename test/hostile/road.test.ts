import { road } from "./cases/road.js";
import { hostile } from "./table.js";

hostile("road", road);
