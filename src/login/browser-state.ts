/** The progress of the browser that sent a callback. */
export type BrowserState = "expected" | "redirected" | "waiting" | "served" | "gone";

/** What changes that. */
export type BrowserEvent = "callback" | "callbackLost" | "pageRequested" | "pageSent" | "pageLost" | "anotherRequest";

/**
 * The state to which an event leads; an event that is not in the row of a state changes nothing.
 *
 *     state       the browser                         leaves it by
 *     expected    has sent no callback yet            callback: to redirected
 *     redirected  is loading the last page            pageRequested: to waiting; callbackLost: to gone
 *     waiting     has requested it, and reads nothing pageSent: to served; pageLost, its last connection: to gone
 *                 before the outcome is known
 *     served      has the outcome                     pageRequested, a reload: to waiting
 *     gone        left without the outcome            pageRequested, it came back: to waiting
 *
 * A browser that is redirected or waiting can be sent to another authorization request instead (anotherRequest): another
 * callback is then expected.
 */
export const TRANSITIONS: Readonly<Record<BrowserState, Partial<Record<BrowserEvent, BrowserState>>>> = {
  expected: { callback: "redirected" },
  redirected: { pageRequested: "waiting", callbackLost: "gone", anotherRequest: "expected" },
  waiting: { pageSent: "served", pageLost: "gone", anotherRequest: "expected" },
  served: { pageRequested: "waiting" },
  gone: { pageRequested: "waiting" },
};
