import { assertions } from "./cases/assertions.js";
import { exchange } from "./cases/exchange.js";
import { hostile } from "./table.js";

hostile("exchange", [...exchange, ...assertions]);
