import { dpop } from "./cases/dpop.js";
import { hostile } from "./table.js";

hostile("tokens that are bound to a key", dpop);
