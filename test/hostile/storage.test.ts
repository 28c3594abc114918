import { storage } from "./cases/storage.js";
import { hostile } from "./table.js";

hostile("storage", storage);
