import { broker } from "./cases/broker.js";
import { hostile } from "./table.js";

hostile("broker", broker);
