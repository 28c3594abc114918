import { addresses } from "./cases/addresses.js";
import { hostile } from "./table.js";

hostile("addresses", addresses);
