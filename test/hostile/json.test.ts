import { json } from "./cases/json.js";
import { hostile } from "./table.js";

hostile("json", json);
