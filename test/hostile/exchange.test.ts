import { exchange } from "./cases/exchange.js";
import { hostile } from "./table.js";

hostile("exchange", exchange);
