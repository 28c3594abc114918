import { lists } from "./cases/lists.js";
import { hostile } from "./table.js";

hostile("lists", lists);
