import nock from "nock";
import { afterEach, beforeEach, expect } from "vitest";

// To import it is to replace the fetch of this process, which the files behind it would take for that of Node.
nock.restore();

/** In each test of the file: every request is answered by nock or fails, and every prepared answer is used. */
export function useNock(): void {
  beforeEach(() => {
    if (!nock.isActive()) nock.activate();
    nock.disableNetConnect();
  });
  afterEach(() => {
    const unused = nock.pendingMocks();
    nock.cleanAll();
    nock.enableNetConnect();
    nock.restore();
    expect(unused).toEqual([]);
  });
}
