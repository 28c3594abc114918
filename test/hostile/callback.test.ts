import { callback } from "./cases/callback.js";
import { hostile } from "./table.js";

hostile("callback", callback);
