import { refresh } from "./cases/refresh.js";
import { hostile } from "./table.js";

hostile("refresh", refresh);
