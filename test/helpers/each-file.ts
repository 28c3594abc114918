import { afterAll, afterEach, vi } from "vitest";
import { checkShownSecrets, forgetSecrets } from "./canaries.js";

// The default of one second is too short on a busy machine.
vi.setConfig({ expect: { poll: { timeout: 60_000 } } });

// Vitest runs this for each test file; a module that the files of a worker share would register its hooks for the first only.
afterEach(checkShownSecrets);
afterAll(() => {
  checkShownSecrets();
  forgetSecrets();
});
